// Package electortest tests lead functions, those that are given to elector.Run, against an
// election in memory, without etcd: the test decides when the function leads, when it loses and
// why, and how much time passes.
//
//	func TestLead(t *testing.T) {
//		e := electortest.New(t)
//		e.Start(lead)                       // follows: another node leads
//		e.Win()                             // lead is called
//		e.Lose(eldest.ErrDeposed)           // its context has ended
//		if err := e.Wait(); err != nil {    // what it returned
//			t.Error(err)
//		}
//	}
//
// Everything but etcd is real: the elector, the election, the session and its deadline, the guard.
// The etcd is a store in memory, compared with a real one by random requests. So l.KV, l.Txn and
// l.Proclaim work, and are refused after the tenure (G4). examples/elector has a complete test.
//
// # The other node
//
// An Election has one node under test, and another node that leads while the node under test does
// not. After each tenure, however it ended, the other node leads, and the node under test is queued
// behind it until the next Win. So a call of the function needs one Win.
//
// # Time
//
// Tests that only win and lose take milliseconds and need no clock. To step time, run the test in
// virtual time, with testing/synctest: then time stands still while the test or the function runs,
// and Advance lets it pass at once, for the node and for the function's own timers.
//
//	synctest.Test(t, func(t *testing.T) {
//		e := electortest.New(t)
//		e.Start(lead, elector.WithTTL(10*time.Second))
//		l := e.Win()
//		e.Disconnect()                      // etcd does not answer the node
//		e.Advance(10 * time.Second)         // no timer of 10 s is waited for
//		if !errors.Is(l.Err(), eldest.ErrSessionLost) {
//			t.Error("it leads past its deadline")
//		}
//	})
//
// # Whole nodes
//
// Client is a client of the etcd in memory. Code that takes a *clientv3.Client, such as elector.Run,
// curator or package observe, can be given it: several nodes of one election then run in the test.
// In virtual time set the clock of their sessions (lease.Options.Clock) to lease.Monotonic().
//
// # Not guaranteed
//
//   - What only a real etcd shows: its latency, its limits, compaction, users and permissions, a
//     loss of quorum, replies that are lost. Client.Auth and Client.Maintenance are nil.
//   - That the schedule repeats: goroutines run in any order, as always. Run tests with -race.
//   - Virtual time passes only while all goroutines of the test wait for each other or for a timer.
//     A goroutine that waits for the network or a system call stops it: give such a function
//     something in memory, or test it without virtual time.
package electortest
