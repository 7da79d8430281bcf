// Package backoff has pauses for more nodes than the default was made for.
//
// Not guaranteed: that etcd is reached soon after it is available again. A long pause reduces the
// load on etcd, and callers wait longer.
//
// # The knob
//
// Config.Backoff of lease, election and observe (requests that failed) and of elector (rounds that
// failed): a function from the number of consecutive failures to a pause.
//
//	spread := backoff.Full(50*time.Millisecond, 30*time.Second)
//	election.Config{Backoff: spread, ...}
//
// The default doubles from 25 ms to 1 s, each pause drawn from the upper half of its step: at most
// one request a second from each client while etcd is unavailable. If ten thousand candidates use
// one etcd that has just become available again, Full spreads them over half a minute. A pause is
// at least 5 ms, whatever the function returns.
//
// # What is lost
//
// Time. If a request has just failed, a waiter may be notified up to one pause late, and the
// election may have no leader for that long. For sessions more than time: the pauses of
// lease.Config.Backoff must leave time for several attempts before the deadline, or one failed
// request costs the lease. For leases use Within, which has the TTL.
package backoff
