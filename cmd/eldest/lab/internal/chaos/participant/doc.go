// Package participant is a participant of a chaos run, as a process of its own: it campaigns,
// and while it leads it works: guarded writes and reads of one key in etcd, and writes with its
// token to a store outside etcd. All that it does and is told it writes to stdout at once, a line of JSON
// each, so that everything up to the moment at which it is killed has been read.
//
// # Life
//
// It reads a Config from stdin, then Orders. Told to quit it leaves the election, closes
// everything, counts what is left of itself, and ends.
//
// # Being certain
//
// While it leads it asks itself every millisecond whether it is certain to lead, between two
// readings of the machine's clock. Only what changes, and a sample now and then, is
// written: the last sample before a long silence and the first after it always are.
// After the end of a tenure it goes on asking for a few samples.
//
// # Heartbeats and keepers
//
// Some participants have heartbeats, of several timeouts, some a keeper, some both, some neither. One whose tenure is
// suspended campaigns again, and leads on with the same token if its key is still there.
//
// # Tight participants
//
// The margin of a lease and the time-outs of renewals hide faults that they are not there
// for. Every other participant therefore has next to none, which is allowed where
// clocks are perfect; the others have the defaults, and clocks that may be wrong as far as
// their margin covers.
//
// # Defects
//
// A test that finds nothing must be shown to find something. A participant can be told
// to be defective: to be certain of a tenure that is over, or to write without the guard.
package participant
