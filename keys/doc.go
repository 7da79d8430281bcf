// Package keys is the layout of an election in etcd: which names are allowed,
// which key a candidate has, which range an election owns. It is pure
// arithmetic on strings; nothing here does I/O or knows the time.
//
// # Layout
//
//	<election>/<lease id as lower-case hex, without padding>
//
// This is, byte for byte, what etcd's own elections use, so a process with
// etcd's concurrency package, etcdctl elect or the v3election service can stand
// in the same queue. The order of the queue is the create revision of the keys,
// not their spelling.
//
// A candidate that can be asked for something (package transfer) has a mailbox
//
//	/eldest/ask/<election>/<lease id, as above>
//
// outside the range, because every key inside it is a candidate to somebody. An election goes
// on without it: whoever may not write there stands as everybody else does. The same
// is true of the pointer to the candidate that registered last (txn.ByPointer):
//
//	/eldest/newest/<election>
//
// A session with heartbeats has one key for them, however many elections it leads:
//
//	/eldest/beat/<lease id, as above>
//
// # Names
//
// A name is any bytes, 1 to MaxName of them, without '/'. The slash is refused
// because two elections must not nest: "svc" owns the range ["svc/", "svc0"), in
// which the keys of an election "svc/a" would lie, and every candidate of "svc/a"
// would stand in the queue of "svc" as well. Neighbours such as "a" and "ab", or
// names that end in 0xFF, cannot collide: each range starts with the name and
// the only slash that is not part of a name.
//
// Whoever wants elections in a directory, or must join one of etcd's whose
// prefix has slashes, wraps the client in clientv3/namespace: with the
// namespace "/prod/" the election "svc" lives in "/prod/svc/".
//
// # Foreign keys
//
// Anything may be written into an election's range by hand. Parse tells
// candidates from foreign keys; Eldest ignores foreign keys and reports them.
// Not guaranteed: that others do. To etcd's concurrency package any key in the
// range is a candidate, so its candidates wait behind a foreign key.
//
// A key of a candidate's shape that somebody put by hand, without a lease, is no
// foreign key: it is a candidate to everybody and blocks the queue until it is
// removed (eldest resign ELECTION KEY).
package keys
