// Package oracle holds what happened in a run and judges it. It knows neither etcd
// nor the library: a history is plain data, in virtual time or of processes on one
// machine, and every checker a pure function of it.
//
// A checker proves nothing about runs it was not shown, and a history without
// traffic satisfies every invariant: whoever makes the run asks [History.Invalid]
// whether the faults struck and the leaders worked, and whoever reads that a run was
// without violation may ask how much was judged ([History.Tally]).
//
// A [History] has two halves. The changes are the truth: every change of the store,
// by revision. The events are the claims: what the participants were told and
// believed, what they did, and what was done to them, with the instants of a clock
// that all of them share. Each checker sets claims against the truth, or against
// each other.
//
// # Of every history
//
//   - [I2] a guarded write commits only while the key of its token exists, is
//     the oldest, and nobody newer has been elected.
//   - [I3] tokens of committed writes never go back; an acknowledged write is
//     there once, a refused one never, an unknown one at most once.
//   - [I4] a winner was alive and the oldest at the revision that proved it.
//   - [Linear] guarded writes and reads are those of one register with tenures.
//   - [Precedes] the order of revisions does not contradict the clock: no write is there
//     before it was asked for, and no read is stale, of each register by itself.
//   - [Observations] what observers are told is true, and does not go back.
//   - [Exits] processes end with the code that what became of them calls for.
//   - [Tokens] tokens rise in the order of wins.
//   - [Leading] nobody says that it is sure to lead when a newer win or the end of its
//     key has been told, or after it was stopped for longer than its lease, or when it
//     was once not.
//   - [Healing] when the faults are over somebody leads soon, and the queue is that
//     of those who stand; nobody is first in it for long without leading.
//   - [Fence] a store that refuses older tokens never accepted one.
//   - [Transfers] a transfer that was reported to have succeeded has: the target led next,
//     and the order among the others is what it was.
//   - [Leftovers] nothing is left when everybody has gone.
//
// # Of virtual time
//
// Where instants are exact, and what is told at one was so at that instant, more
// can be asked ([History.Check]; [History.Judge] leaves these out, all but [Order]):
//
//   - [I1] one leader by real time: from the win to the first instant at which
//     the holder is no longer sure, intervals of two tenures never overlap;
//     removal of a leader's key or lease by somebody else is the one exception.
//   - [I5] when all is quiet, the oldest key belongs to somebody who leads, and
//     no key to nobody.
//   - [I6] candidate, leader, end, each once; and a leader knows of its end
//     before the server lets its lease expire.
//   - [I7] with nothing wrong, no session is lost and the next one leads at once.
//
// # Of steps
//
// A harness that goes step by step, with nothing else that ends a tenure, asks for these
// by name:
//
//   - [Overtaken] nobody wins while an older candidate stands.
//   - [Wakes] a departure is noticed by one candidate.
//   - [InTime] leaders are succeeded in time.
//   - [Granted] the guard refuses old tokens, and only those.
//
// # Processes
//
// Each process appends what it tells to a file of its own, through a [Recorder]; a
// line is there or not, whenever the process is killed. [Load] merges the files by
// instants. The instants are readings of one clock of the machine; between the
// reading and the fact anything may lie, a stop of the process included, so a claim
// is used only for what is certain: a win is no later than its telling, and whoever
// was sure was so between two readings. [Kind] says for each event when it is filed.
package oracle
