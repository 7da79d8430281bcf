// Package contender holds the ways to elect a leader over etcd that package bench
// measures side by side, behind one interface.
//
//	eldest       this project: packages lease, election and observe
//	concurrency  etcd's own client/v3/concurrency
//	herd         the naive protocol: everybody watches everything
//	floor        no protocol at all: a raw delete, seen by a raw watch
//
// Each is one file, which registers it; a new one is a new file. What a contender
// does, it does as its documentation tells its users to, on a client that the caller
// made: the requests that the client counts are the contender's, and the times are
// taken where a user would take them, when the call returns.
//
// # What is not measured here
//
// The floor is no election: it does not prove that its key is alive, it notices no
// loss, and its win is the bare news that a key is gone. It says what the cluster and
// the client cost before any protocol begins.
package contender
