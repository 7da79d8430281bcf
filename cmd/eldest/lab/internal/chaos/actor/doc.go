// Package actor is a participant of a chaos run, as a process of its own: it stands in
// the election, and when it leads it works: guarded writes and reads of one key in etcd,
// and writes with its token to a store outside. All it does and is told goes into a
// history of its own, a line at a time, so that a process that is killed has told
// everything up to that moment.
//
// # Life
//
// It reads a Config, one line of JSON, from stdin, then Orders, one a line, each answered
// by an Answer; in between it says on stdout where it stands, in Notices. At the end of
// stdin it ends at once, wherever it is: whoever started it has died. Told to quit it
// leaves the election, closes everything, counts what is left of itself, and ends.
//
// # Being sure
//
// While it leads it asks itself every millisecond whether it is sure to lead, between two
// readings of the machine's clock. Only what changes, and a sample now and then, is
// written down: the last sample before a long silence and the first after it always are.
// After the end of a tenure it goes on asking for a few samples.
//
// # Contenders
//
// What is tried is a contender of bench/contender.
//
// # Tight participants
//
// The margin of a lease and the time-outs of renewals hide faults that they are not there
// for. Every other participant therefore does with next to none, which is allowed where
// clocks are perfect; the others have the defaults, and clocks that may be off as far as
// their margin covers.
//
// # Defects
//
// A harness that finds nothing must be shown to find something. A participant can be told
// to be defective: to be sure of a tenure that is over, or to write without the guard.
package actor
