// Package watch follows keys and misses no change. An etcd watch may end (compaction, a member
// without a leader), or stop delivering without ending (a member that is stopped, packets that are
// lost). All watches of a client are on one stream of package stream, which reports every
// interruption. This package decides what to read after an interruption.
//
//   - Follow reports a range: a snapshot, then every later change in order. After an interruption
//     it reports the reason, and then a new snapshot. It blocks.
//   - Until reports the end of one life of a key. No goroutine waits for it. It reads the key only
//     if the watch began later than at the revision at which the key was known to exist. Gone is
//     Until, and blocks.
//
// # Why no start revision
//
// After a read at revision R, a watch from R+1 seems the obvious way to follow a key. But if the
// store has moved on, the server puts such a watcher into a group that is scanned every 100 ms.
// Measured, hand-over right after queueing: start revision R, median 83 ms; R+1 under 300 writes a
// second, p99 85 ms; no start revision, median 1.1 ms and p99 3 ms. So Follow opens the watch
// without a start revision, waits until the server has confirmed it, and reads afterwards: the
// watch reports every change that the read does not show.
//
// # Why liveness checks
//
// A stream without events does not show whether the stream is broken or the keys do not change. The
// stream is checked as a whole (see package stream): the check shows that its member answers and
// keeps up. Followers of a range do one more check, at long intervals: a plain request, which the
// client sends to a member that answers. The stream is replaced if the answer contradicts what the
// watch has reported, does not arrive, or is older (etcd was restored from a backup).
//
// Everything is bounded by the context that the caller passes in. No goroutine outlives the call
// or, for Until, the call of stop.
package watch
