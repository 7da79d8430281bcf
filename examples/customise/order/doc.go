// Package order is a queue in another order than first come, first served: the leader stays, and a
// function decides which candidate succeeds it.
//
// Not guaranteed: that it can be mixed. Every candidate of the election must use this queue, with
// the same function: for all other candidates, and for observers, the eldest leads.
//
// # The knob
//
// election.Config.Ordering. In etcd's concurrency package the lowest create revision always leads.
// That order has a property on which everything else depends: no candidate can enter ahead of
// another one. In every other order a candidate can, even ahead of the leader, so a read that shows
// no earlier candidate is no proof of a win.
//
//	q := order.Queue{Before: order.YoungestFirst}
//
// YoungestFirst suits rolling updates: each leader that is replaced hands over to the
// newest process and not to the next one that will be replaced in a minute.
//
// # How
//
// The win is a write. Key(election), outside the election's range, is the claim: it has the
// leader's key and token. A candidate that is the first in the order claims:
//
//	If   mod(claim) = as read, create(own) = token, no key of the queue is newer than the read
//	Then Put(claim, own key and token, own lease)
//
// and it does so only if the claim had no candidate, or one whose key had been deleted when the
// claim was read. A deleted key never returns with the same create revision (create revisions only
// grow), and of all candidates that read the same claim only one can replace it. So at each
// revision the leader is the candidate in the claim, if its key exists with this create revision.
//
// # What stays guaranteed
//
// G1, in these words: at any revision at most one candidate is in the claim and exists, and a
// Leadership exists only after the proof of that at one revision, that of the claim. At that
// revision the candidate that claims is the first of all candidates in the order. G3, G7, G8: they
// depend on the session, on Lead and on the candidate's key. G4: the guard compares the leader's
// key, and as long as that exists the claim is not replaced. The lost reply to a claim is harmless:
// when the call is repeated, the queue finds its own candidate in the claim.
//
// # What is lost
//
// G2: tokens are create revisions, and an earlier candidate may lead later. A store that fences by
// token would refuse the new leader: give it Fence instead, the claim's revision, which grows from
// tenure to tenure.
//
// G5: the order is that of Before, and a candidate may never lead at all. Each waits on one key,
// the next in the order when it read the queue; if others have entered in between since then, it
// reads once more. With YoungestFirst each waiter waits on the leader until that leaves, so the
// first departure after n entries wakes n waiters, each later one wakes one.
//
// G6, and everything that reads the queue in etcd's order: package observe, resolver, the status of
// an elector, the advice of election.Evict and transfer to a named candidate. LeaderOf reads the
// claim.
//
// The claim is as sensitive as the candidates' keys: if it is deleted by hand while a leader
// exists, another candidate can lead beside it. Each read of the queue reads all of it.
package order
