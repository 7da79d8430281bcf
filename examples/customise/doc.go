// Package customise is an index: for each thing that etcd's concurrency package fixes, a
// package below this one changes it. It has no code of its own. docs/customising.md is the
// same as a table.
//
//	examples/customise/renewal   TTL, margin, rhythm of renewing
//	examples/customise/clock     the clock of deadlines
//	examples/customise/backoff   pauses after failures
//	examples/customise/order     who succeeds the leader: another order of the queue
//	examples/customise/payload   what a node writes into its key, as JSON
//	examples/customise/outage    what happens while etcd is away: stop, or stay read-only
//	examples/customise/liveness  renewing only while the application works
//	examples/customise/balance   many elections on one session, with a cap for each process
//
// Not guaranteed: that what is changed is as safe as what is not. Each package says
// what stays guaranteed, by the numbers of package eldest, and what is lost; its tests,
// which run against real etcd, hold it to that.
//
// They import what anybody can import, and can be copied.
package customise
