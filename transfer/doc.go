// Package transfer hands leadership over to a named candidate, and leaves the rest of the queue
// unchanged if that is possible.
//
// # Not guaranteed
//
//   - The target may have lost the leadership again when To returns. If it leaves after the leader
//     has drained, the next candidate leads instead.
//   - Candidates that do not take part do not move: they are never touched, and if one of them is in
//     the way the transfer is refused before any candidate has moved.
//   - A transfer may take long: it waits for the leader's function, and no candidate leads
//     meanwhile.
//
// # What can be promised
//
// The token of a tenure is the create revision of its key, and tokens only increase (G2). So a
// candidate that is older than the target and is to lead after it needs a new key, younger than all
// others. If the target is the next candidate, only the leader's key is deleted, and every promise
// holds: no other candidate moves, including candidates of etcd's own package. Otherwise the
// candidates between the leader and the target requeue; and to keep the order of all others (Keep),
// the candidates behind the target requeue once as well, after them. The order is kept, not the
// keys. With PassBy the candidates behind the target stay, and are then in front of those that
// requeued.
//
// # How
//
// No candidate is moved by deleting its key: such a candidate may continue to lead while it is
// partitioned from etcd (election.Evict). Instead each candidate receives a request, and moves by
// itself, in its own session, by its own compare-and-swap. The request is written to its request
// key, which is outside the election's range. Serve keeps that key while the candidate is queued or
// leads: bound to its lease, with the token of its current key.
//
//	To:     If mod(request key) = seen, and the candidate, the leader and the target exist,
//	           and the request keys of the latter two are as they were in the survey
//	        Then Put(request key, request)
//	Serve:  If the same is true
//	        Then Put(request key, taken) and read which candidates are older than the target
//	        -> Requeue, or Drain if the target is the next candidate
//	        -> Put(request key, answer)
//
// The candidates that requeue receive their requests one at a time and in order, the leader last.
// Until then it leads, and a transfer that stops half way has moved some waiters and nothing else.
// If two transfers would undo each other, the second one finds a changed request key. A request
// that is not taken in time is withdrawn; one that cannot be withdrawn was taken.
//
// # Why two cannot lead
//
// The proof of a win is unchanged, and so is the rule which candidate may be the oldest: a requeue
// is a departure and a registration, and a drain is the end of the leading context while the key
// exists. The key exists until the lead function has returned (or the lease expires, after the
// leading context has ended: G3), and while it exists no candidate is older. The guard of the
// drained tenure refuses locally from the drain on, and in etcd from the deletion on.
package transfer
