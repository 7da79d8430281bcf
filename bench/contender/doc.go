// Package contender holds ways to elect a leader over etcd behind one interface: package
// bench measures them side by side, and the laboratory of the command tries them under
// faults.
//
//	eldest       this project: packages lease, election and observe
//	concurrency  etcd's own client/v3/concurrency
//	herd         the naive protocol: everybody watches everything
//	floor        no protocol at all: a raw delete, seen by a raw watch
//	drop-in      this project behind the API of etcd's package: compat/concurrency
//
// and a variant, for the scenarios in which it makes a difference:
//
//	eldest-keeper  the first with a second process that revokes its leases once it is dead
//
// Each is one file; a new one is a new file, and a word in the list of contender.go. It
// opens a [Session], on which a [Candidate] campaigns; who wins has a [Tenure]. What a contender
// does, it does as its documentation tells its users to, on a client that the caller
// made: the requests that the client counts are the contender's, and the times are
// taken where a user would take them, when the call returns.
//
// # What is not measured here
//
// The candidates of the herd and of the floor campaign once: one whose campaign fails leaves
// its key to the end of the session.
//
// The floor is no election: it does not prove that its key is alive, it notices no
// loss, and its win is the bare news that a key is gone. It says what the cluster and
// the client cost before any protocol begins.
package contender
