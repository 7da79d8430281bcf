// Package memetcd is an etcd in memory, without a network, for tests: keys with their revisions,
// transactions, watches and leases, behind a *clientv3.Client. It uses only channels, locks and
// timers, so that it also works in virtual time (testing/synctest).
//
// A test compares it with a real etcd: random requests must get the same responses from both.
//
// # Not guaranteed
//
//   - Speed and memory: each version of each key is kept, and a range reads all keys.
//   - What only a cluster has: compaction, users, maintenance, limits of size. Client.Compact is
//     refused, and the client's Auth and Maintenance are nil.
//   - The order of keys that are equal in the sort target of a range.
//   - Periodic progress notifications of watches (clientv3.WithProgressNotify); RequestProgress
//     works.
//
// # Files
//
//   - etcd.go has the state, and how a request changes it.
//   - read.go has ranges, write.go puts and deletions, txn.go transactions, lease.go leases.
//   - client.go has the client and its link, which can be interrupted; watch.go has its watches.
package memetcd
