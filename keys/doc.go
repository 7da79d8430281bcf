// Package keys is the key layout of an election in etcd: which names are valid, which key a
// candidate has, which range an election owns. It only computes strings: it does no I/O and reads
// no clock.
//
// # Layout
//
//	<election>/<lease id as lower-case hex, without padding>
//
// This is byte for byte the layout of etcd's own elections, so a process with etcd's concurrency
// package, etcdctl elect or the v3election service can be a candidate in the same queue. The order
// of the queue is the create revision of the keys, not their names.
//
// A candidate that accepts requests (package transfer) has a request key
//
//	/eldest/request/<election>/<lease id, as above>
//
// outside the range, because other clients count every key in the range as a candidate. An election
// works without request keys: a candidate without the permission to write one campaigns as usual.
// The same is true of the pointer to the candidate that registered last (txn.ByPointer):
//
//	/eldest/newest/<election>
//
// A session with heartbeats has one key for them, however many elections it leads:
//
//	/eldest/heartbeat/<lease id, as above>
//
// # Names
//
// A name consists of 1 to MaxName bytes, without '/'. The slash is refused because two elections
// must not nest: "svc" owns the range ["svc/", "svc0"), which would contain the keys of an election
// "svc/a", and every candidate of "svc/a" would be a candidate of "svc" as well. Similar names such
// as "a" and "ab", or names that end in 0xFF, cannot collide: each range starts with the name and
// the only slash that is not part of a name.
//
// To have elections in a directory, or to join one of etcd's whose prefix has slashes, wrap the
// client in clientv3/namespace: with the namespace "/prod/" the keys of the election "svc" are in
// "/prod/svc/".
//
// # Foreign keys
//
// Any client may write keys into an election's range. Parse distinguishes candidates from foreign
// keys; Eldest ignores foreign keys and reports them. Other libraries may not: for etcd's
// concurrency package any key in the range is a candidate, so its candidates wait behind a foreign
// key.
//
// A key with the format of a candidate key that was put by hand, without a lease, is no foreign
// key: it is a candidate for all clients and blocks the queue until it is removed (eldest evict
// ELECTION KEY).
package keys
