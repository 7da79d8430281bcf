// Package balance spreads many elections over a group of processes: with K elections and
// n processes each leads at most K/n of them, rounded up.
//
// Not guaranteed: the cap in the moments after a process has come or gone. Each goes by the
// members it has heard of; when all have heard the same, and nobody is slow to stop, the cap
// holds. Never, at any moment, do two lead one election.
//
// # The knob
//
// Who stands where, and on how many elections a session serves. With etcd's
// concurrency package every process that wants to be available stands in all K elections,
// the first one leads all of them, and whoever wants a share must resign and hope.
//
//	err := balance.Run(ctx, balance.Config{
//		Group: "workers", Member: "node-1", Shards: shards,
//		Session: session, KV: client, Watcher: client, Lead: work,
//	})
//
// # How
//
// All members register in one more election, Group, which nobody campaigns in: its
// queue is the list of members, each bound to the member's session. Every member
// watches it, and computes from it, and from nothing else, whose each shard is (Assign).
// It campaigns for its own and for no other. On a change it first gives up what is no longer its
// own, waits until that has stopped, and then campaigns for what is new.
//
// Members that have heard of different changes may want the same shard: then both
// stand in its election, the one that is there waits for nobody and the other one for it.
// The assignment decides who stands; the election decides who leads.
//
// A session's end takes its place in the group and all its shards in one revision of etcd.
// So after a crash the others learn that a member is gone and that its shards are free
// at once.
//
// # What stays guaranteed
//
// G1 to G8 for each shard. No herd: a change is one event to each member, which sends
// nothing for it but what it gives up and takes: about three requests for a shard that
// moves. It converges, because all compute the same from the same list, and it is stable,
// because nothing moves while the list stays as it is. A change moves few shards: those of who left,
// and what the new cap makes others give up or take.
//
// # What is lost
//
// G5 between members: a shard goes to whom it is assigned to, not to who waited longest.
// Standbys: nobody waits behind the leader of a shard, so a member that lives and does not
// campaign, for being stuck, holds up its shards; give the session a pulse
// (package liveness). And one session is one fate: a lease that is lost costs all of its shards.
package balance
