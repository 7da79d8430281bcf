// Package concurrency has the API of etcd's go.etcd.io/etcd/client/v3/concurrency, implemented with
// the protocol of Eldest. A program changes one import and nothing else:
//
//	import "github.com/eldest-io/eldest/compat/concurrency"
//
// Keys and their order in etcd are the same, so programs with either package can be candidates in
// the same elections and lock the same mutexes.
//
// Not guaranteed: that code that does not check Session.Done stops in time; that an effect outside
// etcd takes place while its author leads (put Election.Rev or Mutex.IsOwner into every
// transaction, and pass Rev to other stores); that a candidate leads while etcd has no quorum. New
// programs find more in the packages lease, election, observe and elector.
//
// # Faults that this package does not have
//
//   - Campaign and Lock report a win only with proof that the session's key exists. In etcd's
//     package a candidate whose key was deleted, or whose lease has expired, wins as soon as the
//     keys before it are deleted.
//   - A waiter whose key is deleted is notified at once, and not when it would win.
//   - A registration whose reply was lost is found and adopted, or removed as soon as it arrives;
//     as an orphaned key it would block the queue for as long as the session lives.
//   - Session.Done closes at the time of sending the last successful renewal plus the TTL less a
//     margin (package lease), before etcd can expire the lease. Counting from the receipt of the
//     reply, as etcd's client does, lets two sessions lead.
//   - One member that does not respond costs an attempt and not the lease.
//   - The session of a leader ends if its key is deleted by others. A key that others put without
//     a lease is bound to the session's lease again, so that it is deleted with the session.
//   - Resign can be called again after it failed, and the key is still watched; Proclaim after a
//     loss returns ErrElectionNotLeader each time.
//   - If several campaigns use one election, the end of one keeps the position of the others.
//   - ResumeElection uses the prefix of NewElection, and not one without its slash.
//   - Observe continues after a compaction, a partition or a restart of etcd.
//   - A campaign whose context ends returns even if etcd cannot be reached, and does not end a
//     leadership that existed before it.
//   - A TryLock that fails has not been queued.
//   - Unlock and Resign delete the key of the tenure that was won, and no later one.
//
// # Other differences
//
//   - Elections, mutexes and sessions may be used by many goroutines at once.
//   - While etcd is unavailable Campaign, Lock, Resign and Unlock repeat their requests until
//     their context ends, the session is lost or, for the latter two, a TTL has passed; etcd's
//     package may return Unavailable when a connection breaks, and the state of the key is unknown.
//   - NewSession with WithLease sends one request before it returns, so that the deadline is
//     known; with an expired lease it returns a session that is done, without an error, like
//     etcd's package.
//   - Key is empty until the campaign is won, as etcd's documentation says.
//   - Keys below the prefix that are no candidates' are ignored: "svc" does not include the
//     candidates of "svc/a", which are in the same queue for etcd's package. A key that is not
//     bound to the session's lease, because it was put by other means, is not adopted.
//   - The error of a campaign that ends without a win wraps ErrElectionNotLeader and has the
//     reason.
//   - IsOwner of a mutex that was never locked is false; in etcd's package it is an error of etcd.
//
// STM is etcd's own (stm.go). The table of behaviours, measured with both packages, is in
// tests/dropin; docs/reference/drop-in.md shows it.
package concurrency
