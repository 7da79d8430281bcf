// Package oracle judges what happened in a run. It knows neither etcd nor the library: a
// history is plain data, of virtual time or of processes on one machine, and each checker
// is a pure function of it.
//
// A checker proves nothing about runs that it was not given, and a history without traffic
// satisfies every invariant: [History.Invalid] says whether the faults took effect and the
// leaders worked, and [History.Tally] how much was judged.
//
// A [History] has two halves. The changes are the truth: every change of the store, by
// revision. The events are the claims: what participants were notified of, what they did,
// and what was done to them, at instants of a clock that all of them share. Each checker
// compares claims with the truth, or with each other.
//
// # Of every history
//
//   - [I2], [I3], [I4], [Tokens], [Leading]: the guard, writes, wins, who is sure to lead.
//   - [Order]: the part of [I6] that needs no exact instants.
//   - [Linear], [Precedes]: guarded writes and reads are those of registers.
//   - [Healing]: when the faults are over somebody leads soon, and the queue is that of the candidates.
//   - [Observations], [Transfers], [Fence], [Exits], [Leftovers].
//
// # Of virtual time
//
// Where instants are exact, and what is reported at one was so at that instant,
// [History.Check] also has [I1], [I5], [I6] and [I7]. [History.Judge] has not.
//
// # Of steps
//
// A harness that goes step by step, with nothing else that ends a tenure, calls these by
// name: [Overtaken], [Wakes], [InTime] and [Granted].
//
// # Processes
//
// Each process appends what it reports to a file of its own, through a [Recorder]; a line
// is there or not, whenever the process is killed. [Load] merges the files by instants.
// Those are readings of one clock of the machine; between the reading and the fact anything
// may lie, a stop of the process included. So a claim is used only for what is certain: a
// win is no later than its report, and a sample was true between two readings. [Kind] says
// for each event when it is recorded.
package oracle
