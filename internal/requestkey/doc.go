// Package requestkey changes the request keys of candidates. A request key holds the request to
// a candidate to give its leadership to another one. There is one for each candidate, beside the
// election's range and bound to the candidate's lease. Each change is one transaction. Package
// transfer defines the content of a request key.
package requestkey
