// Package observe tells who leads, to anyone. An observer has no lease and is no
// candidate: nothing in this room can write, so an observer can never hold up an
// election or win one by accident.
//
// Not guaranteed: that the leader an observer names still leads when the caller
// reads it. It did at State.Revision. Whoever must be sure asks etcd through the
// leader's guard.
//
// # One watch for all
//
// An Observer keeps one watch on the election's range and an ordered picture of
// the queue. When the leader goes, the next one is known from the picture, without
// another request. However many subscribe, etcd sees one watch and one snapshot.
//
// # What is reported
//
//	Led      somebody leads: key, token, value
//	Nobody   the queue is empty
//	Unknown  etcd cannot be asked; the reason is in the state
//
// A subscriber reads the newest state; who is slow skips states and never sees an
// old one (package internal/latest). Tokens never go back (G6). Changes made in
// one transaction show as one change: never a leader whose key is gone already.
//
// # When the watch breaks
//
// Compaction, a member without a leader, a cut connection: the state becomes
// Unknown with the reason, and the observer goes on with a new snapshot as soon
// as etcd answers. A stream that falls silent without breaking is found by a
// recheck, a read of one key at intervals of Config.WatchCheck.
//
// For a single question there are LeaderOf and Queue.
package observe
