// Package renewal has other TTLs and other intervals of renewing a lease.
//
// Not guaranteed: the TTL that is requested. etcd grants at least 1.5 of its election timeouts,
// rounded up to whole seconds (2 s by default); Session.TTL is the granted TTL, and only that is
// used.
//
// # The knob
//
// lease.Config.TTL, Margin and Renewal:
//
//	lease.Config{TTL: 30 * time.Second, Renewal: renewal.Sparing}
//
// Renewal is called with the granted TTL, and again when the server changes it. The default renews
// every TTL/4 with attempts of TTL/12: after one that failed there is time for several more before
// the deadline. Sparing sends half as many requests, for tens of thousands of sessions on one etcd;
// Anxious sends more, for networks that lose many packets.
//
// # What is lost
//
// With a longer TTL, or with Sparing: attempts before the deadline, and time. A crashed leader
// blocks the queue for up to its TTL. With a shorter TTL, or with Anxious: requests, each of which
// etcd's leader answers, and a majority confirms. With a smaller margin: the difference of clock
// rates that G3 tolerates, which is Margin / TTL.
package renewal
