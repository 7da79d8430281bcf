// Package watch follows keys without losing sight of them. etcd's watch is a
// stream that may end (compaction, a member without a leader), resume by itself,
// or fall silent without ending (a member that is stopped, packets that vanish).
// Follow turns it into: a snapshot, then every change after it in order; and when
// that cannot be kept up, a reason, and then a new snapshot.
//
// # Why no start revision
//
// To follow a key from what a read at revision R showed, a watch from R+1 seems
// the obvious way. But if the store has moved on, the server puts such a watcher
// into a group that is scanned every 100 ms. Measured, hand-over right after
// queueing: start revision R, median 83 ms; R+1 under 300 writes a second, p99
// 85 ms; no start revision, median 1.1 ms and p99 3 ms. So Follow opens the watch
// without one, waits until the server says that it is in place, and reads
// afterwards: whatever the read missed, the watch shows.
//
// Gone does the same for one key and one question: when has it ceased to exist? Until answers
// that, too, over the one stream of a plain client (internal/stream), so that who waits needs no
// goroutine. It knows the revision at which the key was alive, and reads only where the watch
// began later.
//
// # Why rechecks
//
// A silent stream cannot be told from a quiet key by looking at it. So at long
// intervals Follow asks with a plain request, which the client sends to whichever
// member answers. When the answer contradicts the stream or does not come, the
// watch is opened anew, on another stream: one key in the metadata of the request
// differs, which makes the client open a stream of its own, to the next member. The
// same is done when the answer is older than what is known (etcd was restored from a
// backup, and the stream waits for revisions that have been), and when a server that asks
// for authentication refuses a watch because the token of the stream, which is that of its
// opening, has expired.
//
// A shared stream is checked as a whole, see internal/stream.
//
// Everything is bounded by the context that the caller passes in; there is no
// goroutine that outlives the call.
package watch
