// Package restore shows how restoring a backup of etcd affects elections: the revisions go back,
// and with them the tokens, unless the revision is bumped.
//
//	go test ./tests/restore
//
// Snapshots are restored by the code of etcdutl itself. docs/operations/backup.md describes the
// consequences for operators.
//
// # What is shown
//
//   - A candidate that was queued when the snapshot was taken is queued again, even if it left
//     long ago, until its lease has expired once more; its guard passes for the same time.
//   - A candidate that registered after the snapshot does not exist: its lease is not found.
//   - The next tokens are lower than some that were issued after the snapshot: a store that
//     fences by token refuses the new leader's writes, or accepts an old leader's.
//   - With --bump-revision (and --mark-compacted) the next token is higher than all of them.
//
// # Not shown
//
// Clusters of several members: all are restored from one snapshot, so the result is the same.
package restore
