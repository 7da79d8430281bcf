// Package eldest elects a leader on etcd with etcd's primitives: leases, transactions that compare
// create revisions, and for each candidate one watch of its predecessor's key. The candidate whose
// key has the lowest create revision, the eldest, leads.
//
// # Not guaranteed
//
//   - An effect outside etcd may happen late: a process may be paused between its last check and
//     the effect. Give the Token to the other store and let it refuse older ones.
//   - No candidate leads while etcd has no quorum.
//   - The answer to "who leads?" may be out of date when it is read. There is no IsLeader, which
//     would invite check-then-act: use the leading context, the guard, or Holds(d).
//
// # Packages
//
// This package has the basic types and the errors. The election itself is in
//
//	keys      the layout: names, candidate keys, ranges
//	lease     sessions: a lease kept alive, and a deadline that is never too late
//	txn       every compare-and-commit; the guard
//	election  one campaign: register, wait, win, lead, leave
//	transfer  a hand-over of leadership to a named candidate
//	observe   which candidate leads now, for clients that only read
//
// A service of which one instance leads uses
//
//	elector   campaigns again and again, and publishes the status of this node
//	curator   a gRPC server that serves while it leads and forwards while it follows;
//	          curator/web is the same for HTTP
//	identity  what a node writes about itself into the value of its key
//	resolver  connects gRPC clients to the leader
//
// Optional packages are
//
//	fence     tokens on HTTP and gRPC, for stores outside etcd that refuse older ones
//	hooks     several hooks as one, and a logger; metrics (Prometheus) and
//	          traces (OpenTelemetry) are modules of their own
//	compat/concurrency  etcd's concurrency API by this protocol: a program changes one import
//	bench     the costs of failover and fan-out, measured beside other libraries in one run
//
// Facts flow up (from etcd through watches to election and observe), commands flow down. Which
// package may import which, and why, is in .golangci.yml. A program that leads once opens a
// lease.Session, makes an election.Candidate with it and calls Campaign. A program that leads again
// and again uses elector; one that only reads uses observe.
//
// # Guarantees
//
// They are numbered here; code, tests and documents cite the numbers.
//
//	G1 At any etcd revision at most one candidate leads. A Leadership exists only
//	   after proof, at one revision, that its key exists and that no older
//	   candidate exists.
//	G2 Tokens of one election strictly increase from tenure to tenure. A tenure that was
//	   suspended (heartbeats) continues with its token.
//	G3 In a running process the leading context ends before the server can expire
//	   the lease. This assumes that the rates of the two clocks differ by less
//	   than margin / TTL, a tenth by default; it never assumes that clocks agree. After
//	   SIGSTOP and, on Linux, after a suspend of the machine it holds at the next use of
//	   Holds. After a pause of a virtual machine it holds only if the clock of the machine
//	   continues, which many hypervisors prevent; if not, only the guard and the token help.
//	   With heartbeats the same holds before a successor can evict the leader, if
//	   the rates of the candidates' clocks differ by less than margin / timeout.
//	G4 A guarded operation commits only during its tenure. If it does not commit,
//	   the caller can distinguish lost leadership, a false compare of its own, and
//	   an unknown outcome.
//	G5 Candidates win in the order of their create revisions. Each waits for exactly one
//	   key and, with heartbeats, for that candidate's heartbeat. One departure wakes
//	   exactly one waiter.
//	G6 An observer never reports a token lower than one that it has reported. It may
//	   skip tenures. It reports "nobody" and "unknown" as such.
//	G7 The user's lead function never overlaps itself in one process: functions
//	   under Lead run one after another, over all tenures of a Candidate and over all
//	   candidates that share an election.Mutex.
//	G8 Whatever ends a campaign (its context, a lost reply, compaction, an error),
//	   its key is removed, at the latest with the lease.
//
// # Compatibility
//
// Keys are laid out and ordered as by etcd's own elections, so processes that use etcd's
// concurrency package, etcdctl elect or the v3election service can be candidates in the same
// election. Their candidates do not have these guarantees: one of them may continue as leader after
// its key was deleted. The guard still refuses every write that such a leader sends through a
// guard, and no other write. docs/interop.md has the details and the tests.
package eldest
