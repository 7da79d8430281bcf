// Package oracle checks the history of a run. It depends neither on etcd nor on the library: a
// history is plain data, of virtual time or of processes on one machine, and each checker is a pure
// function of it.
//
// A checker proves nothing about runs that it was not given, and a history without traffic
// satisfies every invariant: [History.Invalid] reports whether the faults took effect and the
// leaders worked, and [History.Tally] how much was judged.
//
// A [History] has two halves. The changes are the truth: every change of the store, by revision.
// The events are claims: what participants were notified of, what they did, and what was done to
// them, at instants of a clock that all of them share. Each checker compares claims with the truth,
// or with each other.
//
// # Of every history
//
//   - [I2], [I3], [I4], [Tokens], [Leading]: the guard, writes, wins, which participants are sure to lead.
//   - [Order]: the part of [I6] that needs no exact instants.
//   - [Linear], [Precedes]: guarded writes and reads are those of registers.
//   - [Healing]: when the faults are over a candidate leads soon, and the queue is that of the candidates.
//   - [Observations], [Transfers], [Fence], [Exits], [Leftovers].
//
// # Of virtual time
//
// If instants are exact, and each report was true at its instant, [History.Check] also uses [I1],
// [I5], [I6] and [I7]. [History.Judge] does not.
//
// # Of steps
//
// A harness that executes single steps, in which nothing else ends a tenure, calls these by name:
// [Overtaken], [Wakes], [InTime] and [Granted].
//
// # Processes
//
// Each process appends its reports to a file of its own, through a [Recorder]; a line is complete
// or missing, whenever the process is killed. [Load] merges the files by instants. Instants are
// readings of one clock of the machine; anything may happen between the reading and the fact,
// including a stop of the process. So a claim is used only for what is certain: a win is no later
// than its report, and a sample was true between two readings. The comments of [Kind] describe when
// each event is recorded.
package oracle
