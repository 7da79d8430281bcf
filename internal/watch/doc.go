// Package watch follows keys without losing sight of them. An etcd watch may end (compaction, a
// member without a leader), or fall silent without ending (a member that is stopped, packets that
// vanish). All watches of a client are on one stream of package stream, which reports every
// interruption; here it is decided what is read then.
//
//   - Follow reports a range: a snapshot, then every change after it in order; and when that
//     cannot be kept up, a reason, and then a new snapshot. It blocks.
//   - Until reports the end of one life of a key. No goroutine waits for it, and it reads only where
//     the watch began later than at the revision at which the key was known to exist. Gone
//     is Until, and blocks.
//
// # Why no start revision
//
// To follow a key from what a read at revision R showed, a watch from R+1 seems
// the obvious way. But if the store has moved on, the server puts such a watcher
// into a group that is scanned every 100 ms. Measured, hand-over right after
// queueing: start revision R, median 83 ms; R+1 under 300 writes a second, p99
// 85 ms; no start revision, median 1.1 ms and p99 3 ms. So Follow opens the watch
// without one, waits until the server says that it is in place, and reads
// afterwards: what the read does not show, the watch reports.
//
// # Why rechecks
//
// A silent stream cannot be told from a quiet key by looking at it. The stream is
// checked as a whole (see package stream), which shows that its member answers and keeps up. Followers of a
// range ask more, at long intervals: a plain request, which the client sends to
// whichever member answers. When the answer contradicts what the watch has reported, or does not come, or is
// older (etcd was restored from a backup), the stream is replaced.
//
// Everything is bounded by the context that the caller passes in; no
// goroutine outlives the call, or, of Until, stop.
package watch
