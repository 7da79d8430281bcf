// Package concurrency has the API of etcd's go.etcd.io/etcd/client/v3/concurrency, and
// does what that promises by the protocol of Eldest. A program changes one import and
// nothing else:
//
//	import "github.com/eldest-io/eldest/compat/concurrency"
//
// Keys and their order are the same on the wire, so programs with either package stand in
// the same elections and lock the same mutexes, in any order.
//
// Not guaranteed: that code which does not look at Session.Done stops in time; that an
// effect outside etcd lands while its author leads (put Election.Rev or Mutex.IsOwner into
// every transaction, and hand Rev to other stores); that anybody leads while etcd has no
// quorum. New programs find more in the packages lease, election, observe and elector.
//
// # Faults that are gone
//
//   - Campaign and Lock report a win only with proof that the own key is there. In etcd's
//     package a candidate whose key was deleted, or whose lease has expired, wins as soon
//     as those before it go.
//   - A waiter whose key is gone is told at once, and not when its turn would come.
//   - A registration whose reply was lost is found and taken, or removed as soon as it
//     turns up; a ghost would hold up the line for as long as the session lives.
//   - Session.Done closes at the time of sending the last good renewal plus the TTL less a
//     margin (package lease), before etcd can expire the lease. Counting from receipt, as
//     etcd's client does, lets two lead.
//   - One member that swallows requests costs an attempt and not the lease.
//   - A leader whose key somebody deletes has its session ended. A key that somebody puts
//     without a lease is bound to the session's again, so that it goes with the session.
//   - Resign can be called again after it failed, and the key is watched on; Proclaim
//     after a loss returns ErrElectionNotLeader each time.
//   - Of several campaigns on one election the end of one leaves the others their place.
//   - ResumeElection uses the prefix of NewElection, and not one without its slash.
//   - Observe goes on after a compaction, a partition, a restart of etcd.
//   - A campaign whose context ends returns even where etcd cannot be reached, and does not
//     end a leadership that was there before it.
//   - TryLock that fails has not stood in the line.
//   - Unlock and Resign remove the life of the key that was won, and no later one.
//
// # What differs besides
//
//   - Elections, mutexes and sessions may be used by many goroutines at once.
//   - While etcd is away Campaign, Lock, Resign and Unlock ask again until their context
//     ends, the session is lost or, for the latter two, a TTL has passed; etcd's package
//     may return Unavailable where a connection breaks, and leaves open what became of
//     the key.
//   - NewSession of WithLease asks etcd once before it returns, so that the deadline is
//     known; a dead lease is a session that is done, without error, as there.
//   - Key is empty until the campaign is won, as etcd's documentation says.
//   - Keys below the prefix that are no candidates' are ignored: "svc" does not see the
//     candidates of "svc/a", which for etcd's package stand in the same line. A key that
//     the session's lease is not bound to, because somebody put it by hand, is not taken
//     for a place of our own.
//   - A campaign that ends without a win says why: the error wraps ErrElectionNotLeader.
//   - IsOwner of a mutex that was never locked is false; there, an error of etcd's.
//
// STM is etcd's own (stm.go). The table of behaviours, run against both packages, is in
// tests/dropin; docs/reference/drop-in.md shows it.
package concurrency
