// Package clock has clocks other than the system's for the deadlines of sessions.
//
// Not guaranteed: anything with a clock that stops or runs slow. A session whose clock is slower
// than the server's by more than margin / TTL outlives its lease, and two candidates lead.
//
// # The knob
//
// lease.Config.Clock:
//
//	hand := &clock.Hand{}                           // tests, which set the time
//	fast := clock.Fast{Clock: lease.Boot(), By: 50} // machines whose clocks are not trusted
//	lease.Config{Clock: fast, ...}
//
// Hand stands still until a test turns it. A program's reaction to the loss of its lease takes a
// TTL to provoke with a real clock; with Hand it takes no time, and comes when the test turns the
// clock.
//
// Fast gains some thousandths on another clock. It has the effect of a larger Margin, as a rate
// instead of a time: for machines (virtual ones, mostly) whose own clock may be slow.
//
// # What is lost
//
// With Hand: G3, between real processes; it is for tests. With Fast: a part of each lease, in which
// a healthy leader could have continued to lead if a renewal came late.
package clock
