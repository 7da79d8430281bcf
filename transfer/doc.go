// Package transfer hands leadership to a candidate that is named, and leaves the rest of
// the queue as it was where that can be had.
//
// Not guaranteed: that the target still leads when To has returned; that it leads at all,
// if it leaves after the leader has drained (then the next in line does); that candidates
// which do not take part move, or are moved: they are never touched, and where one of
// them is in the way the transfer is refused before anybody has moved. Nor is it quick:
// the leader's function is waited for, and nobody leads meanwhile.
//
// # What can be promised
//
// The token of a tenure is the create revision of its key, and tokens only grow (G2). So
// whoever is older than the target and is to lead after it needs a new key, younger than
// all there are. If the target is the first in line, nothing but the leader's key goes,
// and every promise holds: nobody else moves, whoever they are, candidates of etcd's own
// package included. Else those between the leader and the target requeue; and for the
// order among all others to be kept (Keep), those behind the target requeue once as
// well, after them. What is kept is the order, not the keys. With PassBy those behind stay
// where they are, and are then in front of those who requeued.
//
// # How
//
// Nobody is moved from outside: a candidate whose key another one deletes may lead while
// it cannot hear of it (election.Evict). Each one is asked, and moves by itself, in its
// own session, by its own compare-and-swap. It is asked through its mailbox, a key
// outside the election's range, which Serve keeps for a candidate while it stands: bound
// to its lease, with the token of the life that it is for.
//
//	To:     If mod(mailbox) = seen and the asked, the leader and the target stand,
//	           and the mailboxes of the latter two are as they were in the survey
//	        Then Put(mailbox, request)
//	Serve:  If the same is true
//	        Then Put(mailbox, taken) and read who is older than the target
//	        -> Requeue, or Drain if the target is the next in line
//	        -> Put(mailbox, answer)
//
// Those who requeue are asked one at a time and in order, the leader last. Until then
// it leads, and a transfer that stops half way has moved some waiters and nothing else.
// Of two transfers that would undo each other the second finds a mailbox changed.
// A request that is not taken in time is taken back; one that cannot be taken back was
// taken.
//
// # Why two cannot lead
//
// Nothing in the proof of a win has changed, nor in who may be the oldest: a requeue is
// a departure and a registration, and a drain is the end of the leading context
// while the key stands. The key stands until the lead function has returned (or the lease
// is let go, after the leading context has ended: G3), and while it stands nobody is
// older than it. The guard of the drained tenure refuses on its own side from the
// drain on and on etcd's from the deletion on.
package transfer
