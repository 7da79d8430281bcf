// Package election is one campaign: from standing in the queue, through the win,
// to the end of the tenure.
//
// Not guaranteed: that code which ignores the leading context stops in time; that
// an effect outside etcd which was started in a tenure lands in it (hand the
// Token to the store and let it refuse older ones); that anybody leads while etcd
// has no quorum.
//
// # The protocol
//
//  1. Register: one transaction writes the own key, bound to the session's lease,
//     and learns who is older, or whom to watch (txn.Ordering).
//  2. Wait: on the predecessor's key and on no other (internal/core). One
//     departure wakes one waiter (G5). The own key and the session are watched as
//     well: a waiter whose key is gone says so at once.
//  3. Win: the predecessor's deletion is not a victory; it may have been a
//     waiter. Only a read at one revision that shows the own key alive and nobody
//     older is (G1).
//  4. Lead: until the session's deadline, or until somebody removes the key,
//     whichever is first (leadership.go). Access to etcd goes through the guard.
//  5. Leave: the leading context ends first, the key is deleted after that.
//
// # States
//
//	idle --Register--> standing --win--> leading --Resign, loss--> idle
//	                   standing --Withdraw, loss, context--> idle
//	                   standing --Requeue, ShouldYield--> standing, with a new token
//	                   leading --Drain--> drained --Resign, loss--> idle
//
// A Candidate goes round as often as one likes; each round has its own token. A
// Leadership exists only after the proof, and says why it ended.
//
// A drained tenure is over for whoever leads, while the key still stands: nobody else
// leads before it goes. The next Campaign ends it. Package transfer hands leadership over with these two, the step
// back and the drain.
//
// # What a context bounds
//
// The context of Campaign bounds the campaign, not the tenure: when it ends
// before the win the candidate leaves the queue, and Campaign returns at once,
// even while etcd cannot be reached; the key is then removed in the background,
// for as long as the session lives (G8). The tenure ends with Resign, with the
// session, or from outside. Leadership.Lead ties a tenure to a context.
//
// # Lost replies
//
// A registration whose reply was lost may have happened, or may yet happen. It is
// sent again: the transaction finds the own key and adopts it. If the campaign is
// given up meanwhile, its key is watched, and removed whenever it turns up, until the
// session ends, so that a request that arrives late leaves no ghost.
//
// # Keys that are removed
//
// A key that the candidate gives up is removed until etcd has confirmed that, in the
// background if need be; a refusal is one failed attempt. Its token is doomed before the
// first request is sent: no candidate of the lease adopts it again, so that a late request
// cannot end a later tenure (package internal/past; decision 0022).
//
// # Where the protocol is
//
// All of it is a table of rules, internal/core/table.go, as a page docs/states.md: what a
// candidate does in each phase at each event. Package internal/loop runs it. Here calls become
// events, and steps become hooks, contexts and results.
package election
