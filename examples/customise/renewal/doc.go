// Package renewal has other TTLs and other rhythms of renewing a lease.
//
// Not guaranteed: the TTL that is asked for. etcd grants at least 1.5 of its election
// timeouts, rounded up to whole seconds (2 s by default); what it granted is in Session.TTL,
// and that alone is used.
//
// # The knob
//
// lease.Config.TTL, Margin and Renewal. etcd's concurrency package takes a TTL in
// seconds (60 unless told otherwise, which is also the time for which nobody leads after a
// crash); the client renews at a third of it, on one stream, counts from the receipt of
// the answer, and none of that can be changed.
//
//	lease.Config{TTL: 30 * time.Second, Renewal: renewal.Sparing}
//
// Renewal is asked with the granted TTL, and again when the server changes it. The default
// renews every TTL/4 with attempts of TTL/12: after one that failed there is time for
// several more before the deadline. Sparing asks half as often, for tens of thousands of
// sessions on one etcd; Anxious asks more often, where the network loses much.
//
// # What stays guaranteed
//
// G3, with any rhythm: the deadline counts from the sending of the last renewal that was
// confirmed, whenever the next one is due. A rhythm that cannot work (a pause that ends
// after the deadline) is refused before anything is sent, as is a margin that leaves nothing.
// G1, G2, G4 to G8 do not hang on renewals at all.
//
// # What is lost
//
// With a longer TTL, or a sparing rhythm: attempts before the deadline, and time. A crashed
// leader blocks the queue for up to its TTL. With a shorter one, or an anxious rhythm: requests, each
// of which etcd's leader answers, and a majority confirms. With a smaller margin:
// the difference of clock rates that G3 can bear, which is Margin / TTL.
package renewal
