// Package demo is a plan (package scenario) that shows an election from its first
// candidate to its last: its steps, its words and its checks.
//
// # The cast
//
// Each candidate is a process of its own, "eldest campaign --json", so that it can be
// killed without a farewell, and talks to one member only, so that a member's partition
// is its candidate's as well. An observer and a writer that guards its writes run in
// this process.
//
// # What is judged
//
// Everything that candidates report, that the observer sees and that the demo does
// becomes a Fact of the History. Check writes the facts as a history of package oracle,
// which judges it: it is told neither the script nor what was meant to happen, and its
// tests feed it histories that are wrong. What the summary says is what was found.
//
// Two rules about times need saying:
//
//   - A process killed by SIGKILL reports nothing; its tenure ends with the signal.
//   - A key deleted by somebody else ends the tenure at etcd, at that revision.
//     The old leader hears of it while the new one does, and either may hear
//     first; the tenure is therefore counted until the deletion was sent, and how
//     long the old leader took to hear of it is reported beside it. What it
//     writes in between is refused by the guard.
//
// # Not guaranteed
//
// Figures: they are measured, on a machine that does everything at once. And a run
// in which nothing was violated is no proof.
package demo
