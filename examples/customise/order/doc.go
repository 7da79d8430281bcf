// Package order is a queue in another order than first come, first served: the leader
// stays, and who succeeds it is decided by a function.
//
// Not guaranteed: that it can be mixed. Every candidate of the election must use this
// queue, with the same function: to any other one, and to observers, the eldest leads.
//
// # The knob
//
// election.Config.Ordering. In etcd's concurrency package the lowest create revision leads,
// always. That order has a property which all else rests on: nobody can come in ahead of
// anybody. In every other order somebody can, ahead of the leader even, so "nobody stands
// before me" is no proof of a win.
//
//	q := order.Queue{Before: order.YoungestFirst}
//
// YoungestFirst suits rolling updates: each leader that is replaced hands over to the
// newest process and not to the next one that will be replaced in a minute.
//
// # How
//
// The win is made a write. Key(election), outside the election's range, is the claim: it
// names the leader's key and token. Whoever has nobody before it claims:
//
//	If   mod(claim) = as read, create(own) = token, no key of the queue is newer than the read
//	Then Put(claim, own key and token, own lease)
//
// and it does so only where the claim named nobody, or a life of a key that had ended when
// it was read. A life that has ended never comes back (create revisions only grow), and of
// all who read the same claim only one can replace it. So at each revision the leader is
// the candidate that the claim names, if it is alive in that life.
//
// # What stays guaranteed
//
// G1, in these words: at any revision one candidate at most is named by the claim and
// alive, and a Leadership exists only after the proof of that at one revision, that of the
// claim. Who claims is, at that revision, the first in the order of all that stand.
// G3, G7, G8: they are of the session, of Lead and of the candidate's key. G4: the guard
// compares the leader's key, and as long as that lives the claim is not replaced. A reply to
// a claim that was lost is harmless: asked again, the queue finds that the claim is ours.
//
// # What is lost
//
// G2: tokens are create revisions, and who came earlier may lead later. A store that fences
// by token would refuse the new leader: give it Fence instead, the claim's revision, which
// grows from tenure to tenure.
//
// G5: the order is Before's, and somebody may never lead at all. Each waits on one key, the
// next in the order when it looked; whoever has come in between since makes it look once
// more. With YoungestFirst each waiter waits on the leader until that goes, so the first
// departure after n entries wakes n, each later one wakes one.
//
// G6, and all that reads the queue in etcd's order: package observe, resolver, the status of
// an elector, eldest.Evict's advice and transfer to a named candidate. LeaderOf reads the claim.
//
// The claim is as sensitive as the candidates' keys: who removes it by hand while a leader
// lives lets another one lead beside it. A look at the queue reads all of it.
package order
