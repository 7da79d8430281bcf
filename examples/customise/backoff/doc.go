// Package backoff has pauses for fleets that are larger than the default was made for.
//
// Not guaranteed: that etcd is found again soon after it is back. A pause that is long
// spares etcd and costs whoever waits.
//
// # The knob
//
// Config.Backoff of lease, election and observe (requests that failed) and of elector
// (rounds that failed): a function from the number of failures in a row to a pause. In etcd's
// concurrency package there is none: the client repeats some requests at once, resends a
// renewal after half a second, and what fails otherwise is the program's loop.
//
//	spread := backoff.Full(50*time.Millisecond, 30*time.Second)
//	election.Config{Backoff: spread, ...}
//
// The default doubles from 25 ms to 1 s, each pause drawn from the upper half of its step:
// at most a request a second from each client of an etcd that is away. Where ten thousand
// candidates meet one etcd that has just come back, Full spreads them over half a minute.
// A pause is 5 ms at least, whatever the function returns.
//
// # What stays guaranteed
//
// G1 to G8. Pauses are between requests, and no proof and no deadline hangs on one. A
// campaign that is cancelled ends at once, pause or not.
//
// # What is lost
//
// Time. A waiter may learn of its turn up to one pause late if a request failed just then,
// and an election may stand still for that long. For sessions more than time: the pauses
// of lease.Config.Backoff must leave room for several attempts before the deadline,
// or one request that fails costs the lease. For leases take Within, which knows the TTL.
package backoff
