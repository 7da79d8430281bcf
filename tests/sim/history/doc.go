// Package history holds what happened in a run and judges it: invariants I1 to
// I7, each a checker in a file of its own.
//
// A checker proves nothing about runs it was not shown, and a history without
// traffic satisfies every invariant: whoever makes the run must make sure that
// the faults struck and the leaders worked.
//
// A [History] has two halves. The changes are the truth: every change of the
// store, by revision, with the instant of its commit, taken from inside the
// server. The events are the claims: what the participants were told and
// believed, with the instant they were told. Each checker sets claims against
// the truth.
//
//   - [I1] one leader by real time: from the win to the first instant at which
//     the holder is no longer sure, intervals of two tenures never overlap;
//     removal of a leader's key or lease by somebody else is the one exception.
//   - [I2] a guarded write commits only while the key of its token exists, is
//     the oldest, and nobody newer has been elected.
//   - [I3] tokens of committed writes never go back; an acknowledged write is
//     there once, a refused one never, an unknown one at most once.
//   - [I4] a winner was alive and the oldest at the revision that proved it, and
//     tenures start in create-revision order.
//   - [I5] when all is quiet, the oldest key belongs to somebody who leads, and
//     no key to nobody.
//   - [I6] candidate, leader, end, each once; and a leader knows of its end
//     before the server lets its lease expire.
//   - [I7] with nothing wrong, no session is lost and the next one leads at once.
//
// A checker returns every violation it finds and is a pure function, so it is
// tested on histories written by hand, good and bad.
package history
