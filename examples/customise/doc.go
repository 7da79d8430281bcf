// Package customise is an index: for each thing that is fixed in etcd's concurrency package, a
// package below this one changes it. It has no code of its own. docs/customising.md has the same
// list as a table.
//
//	examples/customise/renewal   TTL, margin, interval of renewals
//	examples/customise/clock     the clock of deadlines
//	examples/customise/backoff   pauses after failures
//	examples/customise/order     the leader's successor: another order of the queue
//	examples/customise/payload   the value of a node's key, as JSON
//	examples/customise/outage    behaviour while etcd is unavailable: stop, or stay read-only
//	examples/customise/liveness  renewing only while the application works
//	examples/customise/balance   many elections on one session, with a cap for each process
//
// Not guaranteed: that the changed behaviour is as safe as the default. The table in
// docs/customising.md has the guarantees that remain, by the numbers of package eldest; each package
// documents what is lost.
//
// They import only public packages, and can be copied.
package customise
