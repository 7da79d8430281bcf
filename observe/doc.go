// Package observe reports the leader of an election to any client. An observer has no lease and is
// no candidate: nothing in this package can write, so an observer can never delay an election or
// win one by accident.
//
// Not guaranteed: that the leader that an observer reports still leads when the caller reads it. It
// did at State.Revision. Clients that must be sure use the leader's guard in etcd.
//
// # One watch for all
//
// An Observer keeps one watch on the election's range and an ordered view of the queue. When the
// leader's key is deleted, the view already has the next leader, without another request. For any
// number of subscribers etcd serves one watch and one snapshot.
//
// # What is reported
//
//	Led      a candidate leads: key, token, value
//	Nobody   the queue is empty
//	Unknown  etcd cannot be reached; the reason is in the state
//
// A subscriber reads the newest state; a slow one skips states and never reads an old one (package
// internal/latest). Tokens never decrease (G6). Changes made in one transaction are reported as one
// change: a leader whose key is already deleted is never reported.
//
// # When the watch breaks
//
// After compaction, a member without a leader, or a broken connection, the state becomes Unknown
// with the reason, and the observer continues with a new snapshot as soon as etcd responds. A
// stream that delivers nothing although it is not broken is found by a liveness check, a read of
// one key at intervals of Config.WatchCheck. That key is the leader's: while it does not change,
// Observer.Queue may stay behind until the client's keepalive ends the connection. Changes, and an
// Observer with a Config.Key, check the stream, too.
//
// # The whole queue
//
// Changes reports each change of any candidate, with a watch of its own: for tools and audits. It
// costs etcd one event for each change and each loop, where an Observer's watch serves any number of
// subscribers, so do not use it in every candidate. LeaderOf and Queue read the leader and the queue
// once.
package observe
