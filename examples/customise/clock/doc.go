// Package clock has clocks other than the system's for the deadlines of sessions.
//
// Not guaranteed: anything by a clock that stops or runs slow. A session whose clock is
// slower than the server's by more than margin / TTL outlives its lease, and two lead.
//
// # The knob
//
// lease.Config.Clock. In etcd's concurrency package there is no clock to choose: the client
// compares time.Now, whose monotonic part stands still while a Linux machine sleeps, with a
// deadline counted from the receipt of the last answer.
//
//	hand := &clock.Hand{}                           // tests: time is what they say
//	fast := clock.Fast{Clock: lease.Boot(), By: 50} // machines whose clocks are not trusted
//	lease.Config{Clock: fast, ...}
//
// Hand stands still until a test turns it. A program's reaction to the loss of its
// lease, which takes a TTL to provoke with a real clock, takes no time, and comes when the
// test says so.
//
// Fast gains some thousandths on another clock. It buys what a larger Margin buys, as a rate
// instead of a time: for machines (virtual ones, mostly) whose own clock may be slow.
//
// # What stays guaranteed
//
// All of G1 to G8, with a clock that is no slower than the server's, by more than the
// margin bears, and never runs backwards. A clock that is too fast is always safe.
// G1, G2, G4 and the guard do not hang on a clock at all: with a Hand that is never turned,
// late writes are refused as ever.
//
// # What is lost
//
// With Hand: G3, between real processes; it is for tests. With Fast: a part of each lease,
// in which a healthy leader could have led on, had a renewal come late.
package clock
