// Package chaos tests an election under faults: participants in separate processes (package
// participant) on a real cluster, a seeded schedule of faults, each of which must be shown to take
// effect, and the verdict of package oracle on all that was reported.
//
// # Series and rounds
//
// A series is one cluster, one election and one history: rounds of faults, one after another, then
// all participants leave, and the cluster is searched for what they left behind. If the election
// does not settle after a round, the series ends there; later rounds would report the same failure
// again. The seed of a series and a round's number determine the round: repeating the series up to
// that round repeats the faults, though not the interleaving of the processes.
//
// In a round one fault or two are injected and held for a while; then all are healed; then within
// the recovery time (the TTL and 3 s) a participant must lead and write, and the queue must be
// exactly the living participants. A fault names a role (the leader, a waiter), not a process; a
// leader may cease to lead between the query for the leader and the injection.
//
// # Heartbeats and keepers
//
// Three of five participants of Eldest have heartbeats, each process with another timeout, and
// every other participant has a keeper; the seed determines which ones. Timeouts are less than the
// TTL, so the recovery time is the same.
//
// # Effects
//
// Each fault shows that it took effect: a process is stopped or has ended, a proxy has dropped
// data, a member's links have held data back, a read at a compacted revision is
// refused, a clock has run at the rate that was ordered. Healing a fault can be repeated until it
// has succeeded.
//
// # Verdicts
//
// A round is invalid when one of its faults was not seen to take effect. A series is invalid when
// its history has a gap, or when a process failed that no fault had killed. A run is invalid when
// it had the occasions for a suspension, an eviction, or a revocation by a keeper, and had none. An
// invalid result proves nothing and is not a success. A violation is what the oracle finds, or a
// round after which the election did not settle.
//
// # What is left behind
//
// Nothing: all processes end with this one, however it ends, keepers within the TTL after it, and
// their data is deleted. The history of a series with a violation is kept, with a picture of its
// register.
//
// # Not guaranteed
//
// A seed that found a violation may not find it again: it only repeats the scenario.
package chaos
