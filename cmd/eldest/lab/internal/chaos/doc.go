// Package chaos tests an election under faults: participants that are processes of their
// own (package participant) on a real cluster, a seeded schedule of faults, each of which has to
// show that it took effect, and the judgement of package oracle on what all have told.
//
// # Series and rounds
//
// A series is one cluster, one election and one history: rounds of faults, one after
// another, then the departure of all and the search for what they left. A series that
// does not settle after a round ends there; what follows would tell of that round
// again. The seed of a series and a round's number make the round: running the series
// again up to it repeats the faults, though not the interleaving of the processes.
//
// A round: one fault or two are injected and held for a while; all is healed; then within
// the time to recover (the TTL and 3 s) somebody must lead and write, and the queue must
// be exactly the participants that live. A fault names a role (the leader, a waiter), not a process;
// a leader may cease to lead between the question who leads and the injection.
//
// # Heartbeats and keepers
//
// Three of five participants of Eldest have heartbeats, each process with another timeout, and
// every other one has a keeper; which ones, the seed says. Timeouts are less than the TTL, so the time to recover
// is the same.
//
// # Effects
//
// Each fault shows that it took effect: a process is stopped or has ended, a proxy has
// swallowed something, a member's links have held something back, a read of the past is
// refused, a clock has run at the rate that was ordered. Healing a fault can be repeated until it
// has succeeded.
//
// # Verdicts
//
// A round is invalid when one of its faults was not seen to take effect, and so is a
// series whose history has a gap, or in which a process failed that nobody killed. A whole run is, too,
// that had the occasions for a suspension, an eviction, or a revocation by a keeper, and had none. Invalid
// proves nothing and is not a success. A violation is what the oracle finds, or a round
// after which the election did not settle.
//
// # What is left behind
//
// Nothing: all processes end with this one, however it ends, keepers within the TTL after it, and their data with
// them.
// Of a series with a violation the history is kept, and a picture of its register.
//
// # Not guaranteed
//
// That a seed that found something finds it again: it repeats the scenario.
package chaos
