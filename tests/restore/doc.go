// Package restore shows what a backup of etcd does to elections when it is restored: the
// revisions go back, and with them the tokens, unless they are bumped.
//
//	go test ./tests/restore
//
// A member is a process of its own, this test binary; snapshots are restored by the code of
// etcdutl itself. docs/operations/backup.md tells operators what follows from it.
//
// # What is shown
//
//   - A candidate that stood when the snapshot was taken stands again, also if it left long ago, until its lease
//     has run out once more; and its guard holds as long.
//   - Who came after the snapshot is not there: its lease is not found.
//   - The next tokens are lower than some that were given away after the snapshot: a
//     store that fences by token refuses the new leader's writes, or takes an old leader's.
//   - With --bump-revision (and --mark-compacted) the next token is higher than all of them.
//
// # Not shown
//
// Clusters of several members: all are restored from one snapshot, so it makes no difference.
package restore
