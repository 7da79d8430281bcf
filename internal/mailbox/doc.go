// Package mailbox changes the mailboxes of candidates, through which a candidate is asked to give
// its leadership to another one: one key for each, beside the election's range and bound to the
// candidate's lease. Each change is one transaction; what is in a mailbox is package transfer's
// business.
package mailbox
