// Package demo is a plan (package scenario) that shows an election from its first candidate to its
// last: its steps, its texts and its checks.
//
// # Participants
//
// Each candidate is a process, "eldest campaign --json", so that it can crash. It reaches etcd
// through one member only, so that a partition of the member is also one of the candidate. An
// observer and a writer that guards its writes run in this process.
//
// # What is judged
//
// Everything that candidates report, that the observer sees and that the demo does is a fact. Check
// writes the facts as a history of package oracle, which judges it: the oracle does not depend on
// the steps, and its tests have histories with violations.
//
// Two rules about times:
//
//   - A process killed by SIGKILL reports nothing; its tenure ends with the signal.
//   - A key deleted by another client ends the tenure in etcd, at that revision. The old leader
//     and the new one are notified at the same time, in any order; the tenure is therefore
//     counted until the deletion was sent, and the time until the old leader was notified is
//     reported separately. The guard refuses what the old leader writes in between.
//
// # Not guaranteed
//
// Exact times: they are measured on a machine that runs everything at once. A run without a
// violation is no proof, either.
package demo
