// Package load puts a load on three members of etcd and tests whether the library carries it: many
// candidates in one election, some of which depart all the time, many observers, many forwarded
// calls at once, and members that are killed meanwhile.
//
// Speed is not judged. Times are reported; what is judged holds on a machine of any speed, or the
// run is INVALID, because the load was not reached. docs/reference/load.md has the commands.
//
// Candidates have a session and so a lease of their own. Each that departs is followed by another one,
// with a new session (candidate.go). Every leader writes with its guard. Observers are goroutines that
// read a subscription each (observers.go). Bursts of calls are sent to those nodes of a leader-elected
// service that do not lead, and are forwarded (service.go). One member of etcd after the other is killed
// and restarted, and the history is compacted (run.go).
//
// # What is judged
//
// What the candidates were notified of and wrote, and what etcd has, is recorded in a file
// (record.go) and judged at the end by the rules of package oracle; each burst of calls by the same
// rules when it is over.
//
//   - No candidate is lost: every departure of a leader is followed by a leader; tenures never overlap;
//     no candidate is first for long without leading; the queue in etcd has exactly the participants'
//     keys, without orphaned ones.
//   - No write is lost: a guarded write that was acknowledged is in etcd, one that was refused is not,
//     and tokens do not go back; the same holds for each forwarded call.
//   - Every call ends with a code that package curator documents.
//   - Every observer is notified of each leader, or of a newer one, and never of an older one.
//   - No call is stuck: every call into the library returns in time (Scale.patience).
//   - Memory is flat: for the heap, the resident memory, and the number of goroutines the lower quartile
//     of the last third of the run is at most 5 % above that of the second (meter.go). A run of less than
//     five minutes is too short to judge that.
//   - When all have left, no lease, key or goroutine is left.
//
// Errors that reach a caller unexpectedly are no violation. They are counted by kind.
//
// A run that did not reach its load (Scale.missed) is INVALID, which fails like a violation.
package load
