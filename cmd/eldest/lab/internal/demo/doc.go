// Package demo is a plan (package scenario) that shows an election from its first candidate to
// its last: its steps, its words and its checks.
//
// # Participants
//
// Each candidate is a process of its own, "eldest campaign --json", so that it can crash, and
// reaches etcd through one member only, so that a member's partition is its candidate's as
// well. An observer and a writer that guards its writes run in this process.
//
// # What is judged
//
// Everything that candidates report, that the observer sees and that the demo does is a fact.
// Check writes the facts as a history of package oracle, which judges it: it does not know the
// script, and its tests have histories that are wrong.
//
// Two rules about times:
//
//   - A process killed by SIGKILL reports nothing; its tenure ends with the signal.
//   - A key deleted by somebody else ends the tenure in etcd, at that revision. The old leader
//     and the new one are notified at the same time, in any order; the tenure is therefore
//     counted until the deletion was sent, and how long the old leader took to be notified is
//     reported beside it. What it writes in between is refused by the guard.
//
// # Not guaranteed
//
// Times: they are measured on a machine that runs everything at once. And a run in which
// nothing was violated is no proof.
package demo
