// Package fence is a store outside etcd that refuses older tokens: what G2 asks of
// whoever keeps data elsewhere. It is a process of its own, so that a participant's
// request can be under way while the participant is stopped or killed.
//
// # Protocol
//
// A connection carries lines, "<token> <who>", each answered by "ok" or "old", in order.
// The store accepts a token that is not older than the newest it has accepted, which the
// module's public fence.Memory compares. It writes
// each request into its history, in the order in which it decided, before it answers.
//
// # Not guaranteed
//
// Anything after the process has ended: it remembers nothing.
package fence
