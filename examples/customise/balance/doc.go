// Package balance spreads many elections over a group of processes: with K elections and
// n processes each leads at most K/n of them, rounded up.
//
// Not guaranteed: the cap in the moments after a process has joined or left. Each process uses the
// list of members that it has received; when all have received the same list, and no process is
// slow to stop, the cap holds. Two processes never lead one election at the same moment.
//
// # The knob
//
// The elections in which a process campaigns, all of them on one session.
//
//	err := balance.Run(ctx, balance.Config{
//		Group: "workers", Member: "node-1", Shards: shards, Client: client, Lead: work,
//	})
//
// # How
//
// All members register in one more election, Group: its queue is the list of members, each bound to
// the member's session (elector.Group). Every member watches it (observe.Changes), and computes the
// owners of the shards from it alone (Assign). It campaigns for its own shards and for no others.
// On a change it first gives up the shards that it no longer owns, waits until their lead functions
// have returned, and then campaigns for the new ones.
//
// Members that have received different changes may want the same shard: then both are candidates in
// its election, the first one waits for no other and the second one waits for it. The assignment
// decides which members campaign; the election decides which one leads.
//
// The end of a session deletes its key in the group and the keys of all its shards in one revision
// of etcd. So after a crash the others are notified at once that a member has left and that its
// shards are free.
//
// # What is lost
//
// G5 between members: a shard goes to its owner, not to the member that waited longest. Standbys:
// no member waits behind the leader of a shard, so a member that is alive but stuck, and does not
// campaign, blocks its shards; give the session a liveness probe (package liveness). And all shards
// share one session: a lease that is lost costs all of them. examples/shards has standbys, and no
// assignment.
package balance
