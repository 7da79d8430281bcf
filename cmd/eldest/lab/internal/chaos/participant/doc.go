// Package participant is a participant of a chaos run, in its own process: it campaigns, and while
// it leads it makes guarded writes and reads of one key in etcd, and writes with its token to a
// store outside etcd. It immediately writes everything that it does and is notified of to stdout, a
// line of JSON each, so that everything up to the moment at which it is killed has been read.
//
// # Life
//
// It reads a Config from stdin, then Orders. When it is ordered to quit it leaves the election,
// closes everything, counts what is left of itself, and ends.
//
// # Being certain
//
// While it leads it checks every millisecond whether it is certain to lead, between two readings of
// the machine's clock. It writes only changes, and a sample now and then, but always the last
// sample before a long pause and the first after it. After the end of a tenure it takes a few more
// samples.
//
// # Heartbeats and keepers
//
// Some participants have heartbeats, of several timeouts, some a keeper, some both, some none. A
// participant whose tenure is suspended campaigns again, and leads on with the same token if its
// key still exists.
//
// # Tight participants
//
// The margin of a lease and the timeouts of renewals hide faults that they are not meant for. Every
// other participant therefore has next to no margin, which is allowed with perfect clocks; the
// others have the defaults, and clocks that may be wrong by as much as their margin covers.
//
// # Participants that people watch
//
// With Config.Calm a participant sends little, so that people can follow its messages: only the
// protocol's, and one guarded write of the leader now and then. It reports that it is certain of its
// tenure ten times a second. A candidate of Eldest also reports its phase, and takes part in transfers.
//
// # Rules
//
// The checks must be shown to find faults, and people want to see what a rule is for. So a participant
// can be configured not to follow a rule: to be certain of a tenure that is over, for example, or to
// write without the guard.
package participant
