// Package election is one campaign: from the registration, through the win, to the end of the
// tenure.
//
// # Not guaranteed
//
//   - Code that ignores the leading context may continue after the tenure.
//   - An effect outside etcd that was started in a tenure may happen after it (give the Token to the
//     store and let it refuse older ones).
//   - No candidate leads while etcd has no quorum.
//
// # The protocol
//
//  1. Register: one transaction writes the candidate's key, bound to the session's lease,
//     and reads which candidates are older, or which key to watch (txn.Ordering).
//  2. Wait: for the predecessor's key and no other (internal/core). One departure wakes
//     one waiter (G5). The candidate's own key and the session are watched as well: a
//     waiter whose key is deleted returns at once.
//  3. Win: the predecessor's deletion is no proof of a win: the predecessor may have been
//     a waiter. The proof is a read at one revision at which the candidate's key exists and no
//     older candidate does (G1).
//  4. Lead: until the session's deadline, or until another client removes the key,
//     whichever is first (leadership.go). Access to etcd goes through the guard, and
//     watches end with the tenure (watcher.go).
//  5. Leave: the leading context ends first, the key is deleted after that.
//
// # States
//
//	idle --Register--> queued --win--> leading --Resign, loss--> idle
//	                   queued --Withdraw, loss, context--> idle
//	                   queued --Requeue, ShouldYield--> queued, with a new token
//	                   leading --Drain--> drained --Resign, loss--> idle
//
// A Candidate may repeat this cycle any number of times; each cycle has its own token. A Leadership
// exists only after the proof, and has the reason why it ended.
//
// A drained tenure is over for the code that leads, while the key still exists: no other candidate
// leads before it is deleted. The next Campaign ends it. Package transfer hands leadership over
// with Requeue and Drain.
//
// # What a context bounds
//
// The context of Campaign bounds the campaign, not the tenure: when it ends before the win the
// candidate leaves the queue, and Campaign returns at once, even while etcd is unavailable; the key
// is then removed in the background during the session (G8). The tenure ends with Resign, with the
// session, or when another client removes the key. Leadership.Lead ties a tenure to a context.
//
// # Lost replies
//
// A registration whose reply was lost may have been applied, or may be applied later. It is sent
// again: the transaction finds the candidate's key and adopts it. If the campaign is given up
// meanwhile, the key is watched, and removed whenever it appears, until the session ends, so that a
// request that arrives late leaves no orphaned key.
//
// # Keys that are removed
//
// The removal of a key that the candidate gives up is repeated until etcd has confirmed it, in the
// background if necessary; a refusal is one failed attempt. The key's token is doomed before the
// first request is sent: no candidate of the lease adopts it again, so that a late request cannot
// end a later tenure (package internal/past; decision 0022).
//
// # Other candidates
//
// Candidates of etcd's own package, of etcdctl elect and of the v3election service can share an
// election with those of this package, in any order. docs/interop.md describes what differs, and
// tests/interop shows it.
//
// # Where the protocol is
//
// The protocol is a table of rules, internal/core/table.go, as a page docs/states.md: the action of
// a candidate in each phase for each event. Package internal/loop runs it. In this package calls
// become events, and steps become hook calls, contexts and results.
package election
