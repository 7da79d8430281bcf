// Package contender provides ways to elect a leader over etcd behind one interface: package bench
// compares them, and the laboratory of the command tests them under faults.
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
//	eldest-heartbeat-1s     the first with heartbeats: a leader that sends none for that time is evicted
//	eldest-heartbeat-500ms
//
// To add one, add a file and an entry in the list in contender.go. A contender opens a [Session],
// on which a [Candidate] campaigns; a winner has a [Tenure]. A contender uses its package in the
// way that the package's documentation describes, on a client that the caller made: the requests
// that the client counts are the contender's, and times are taken when a call returns.
//
// # Not guaranteed
//
// That candidates of the herd and of the floor can campaign again: after a campaign that failed the
// key remains until the session ends.
//
// The floor is not an election: it does not prove that its key exists, it does not notice a loss,
// and its win is the event that another key was deleted. It shows what the cluster and the client
// cost without a protocol.
package contender
