// Package load puts a load on three members of etcd and looks whether the library
// carries it: many candidates in one election, of whom some depart all the time, many
// observers, many forwarded calls at once, and members that are killed meanwhile.
//
//	go test -v ./cmd/eldest/lab/load                                   # in small, a quarter of a minute
//	go test -v -timeout 30m ./cmd/eldest/lab/load -load.for=10m        # the full load
//	go test -v -timeout 30m ./cmd/eldest/lab/load -load.for=10m -load.json load.json
//	go test -v -timeout 30m ./cmd/eldest/lab/load -load.for=10m -load.part=0.2
//
// Not judged: how quick anything is. Times are reported; what is judged is true on a
// machine of any speed, or the run is INVALID, because the load was not reached.
//
// # Who takes part
//
// Candidates, each with a session and so a lease of its own. Each that departs is
// followed by another one, with a new session (candidate.go); the ways to depart are
// from resigning to leaving without a word. Every leader writes behind its guard.
//
// Observers, each a goroutine that reads a subscription (observers.go). A service of which
// one node leads, and whose leader now and then gives up; bursts of calls come to the
// nodes that do not lead and are forwarded (service.go).
//
// One member of etcd after the other is killed and comes back, and the history is
// compacted (run.go).
//
// # What is judged
//
// What the candidates are told and write, and what etcd has, is kept in a file (record.go)
// and judged at the end by the rules of package oracle; each burst of calls by the same
// rules when it is over.
//
//   - Nobody is lost: every departure of a leader is followed by a leader; tenures never
//     overlap; nobody stands first for long without leading; the queue in etcd is that
//     which the participants believe in, without ghosts.
//   - Nothing is lost: a guarded write that was acknowledged is in etcd, one that was
//     refused is not, and tokens do not go back; the same of each forwarded call.
//   - Every call ends with a code that package curator documents.
//   - Every observer hears of each leader, or of a newer one, and never of an older one.
//   - Nobody is stuck: every call into the library returns in time (Scale.patience).
//   - Memory is flat: of the heap, of the process in memory, and of the goroutines the
//     median of the last third of the run is at most 5 % above that of the second
//     (meter.go). A run of less than five minutes is too short to say so.
//   - When all have left, no lease, key or goroutine is left.
//
// Errors that reach a caller who had not asked for them are no violation. They are counted
// by kind.
//
// A run that did not reach its load is INVALID, which fails like a violation: four fifths
// of the departures, the bursts of calls, the kills, the returns, the compactions, the
// leaders' crashes and the hand-overs that its scale has time for; and of what the faults
// themselves take away, less: two fifths of the calls answered OK, and a tenure, a
// convergence of the observers and a guarded write for every 25th departure (summary.go).
package load
