// Package contender holds ways to elect a leader over etcd behind one interface: package
// bench measures them side by side, and the laboratory of the command tries them under
// faults.
//
//	eldest       this project: packages lease, election and observe
//	concurrency  etcd's own client/v3/concurrency
//	herd         the naive protocol: every candidate watches everything
//	floor        no protocol at all: a raw delete, received by a raw watch
//	drop-in      this project behind the API of etcd's package: compat/concurrency
//
// and variants, for the scenarios in which they make a difference:
//
//	eldest-keeper           the first with a second process that revokes its leases once it is dead
//	eldest-heartbeat-1s     the first with heartbeats: a leader that is silent for that time is evicted
//	eldest-heartbeat-500ms
//
// A new one is a new file, and a word in the list of contender.go. It
// opens a [Session], on which a [Candidate] campaigns; a winner has a [Tenure]. A contender
// uses its package as the documentation of that tells users to, on a client that the caller
// made: the requests that the client counts are the contender's, and a time is that of the return
// of a call.
//
// # Not guaranteed
//
// That candidates of the herd and of the floor can campaign again: after a campaign that failed
// the key remains until the session ends.
//
// The floor is no election: it does not prove that its key exists, it notices no
// loss, and its win is the event that another key is gone. It shows what the cluster and
// the client cost before any protocol begins.
package contender
