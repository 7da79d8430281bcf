// Package eldest elects a leader on etcd, straight from etcd's primitives: leases,
// create-revision compare-and-swap transactions, and a watch on one's predecessor
// only. The candidate whose key has the lowest create revision, the eldest, leads.
//
// # Not guaranteed
//
// No election can promise that an effect outside etcd stops in time: a process may
// be stopped between its last check and the effect. Hand the Token to the other
// store and let it refuse older ones. Nor does anybody lead while etcd has no
// quorum. Nor is the name "leader" worth more than the last moment at which it was
// checked; this package has no IsLeader, which would invite check-then-act, but a
// context that ends, a guard that refuses, and Holds(d).
//
// # The rooms
//
// This package holds the nouns and the errors. The work is done in
//
//	keys      the layout: names, candidate keys, ranges
//	lease     sessions: a lease kept alive, and a deadline that is never too late
//	txn       every compare-and-commit; the guard
//	election  one campaign: register, wait, win, lead, leave
//	transfer  leadership handed to a candidate that is named
//	observe   who leads now, for anyone
//
// and a service of which one instance leads stands on
//
//	elector   stands again and again, and says what this node is
//	curator   a gRPC server that serves while it leads and forwards while it follows;
//	          curator/web is the same for HTTP
//	identity  what a node tells of itself in its key's value
//	resolver  leads gRPC clients to the leader
//
// Beside them
//
//	fence     tokens on HTTP and gRPC, for stores outside etcd that refuse older ones
//	hooks     several hooks told at once, and a logger; metrics (Prometheus) and
//	          traces (OpenTelemetry) are modules of their own
//	compat/concurrency  etcd's concurrency API by this protocol: a program changes one import
//	bench     what failover and fan-out cost, ours beside others', in one run
//
// Facts flow up (etcd to watch to election and observe), commands flow down. Which
// room may import which, and why, is in .golangci.yml. A program that leads opens a
// lease.Session, makes an election.Candidate with it and calls Campaign; one that
// wants to lead for ever uses elector; one that only looks uses observe.
//
// # Guarantees
//
// They are numbered once, here; code, tests and documents cite the numbers.
//
//	G1 At any etcd revision at most one candidate is the leader, and a Leadership
//	   exists only after proof, at one revision, that the own key is alive and
//	   that no older candidate is.
//	G2 Tokens of one election strictly increase from tenure to tenure. A tenure that was
//	   suspended (heartbeats) leads on with its token.
//	G3 In a running process the leading context ends before the server can expire
//	   the lease. This assumes that the rates of the two clocks differ by less
//	   than margin / TTL, and never that clocks agree. After SIGSTOP and, on
//	   Linux, a suspend of the system it holds at the next use (Holds); after a
//	   pause of the virtual machine only where its clock goes on meanwhile, which
//	   many hypervisors prevent: there only the guard and the token help.
//	   With heartbeats the same holds before a successor can evict the leader, if
//	   the rates of the candidates' clocks differ by less than margin / timeout.
//	G4 A guarded operation commits only inside its tenure. If it does not commit,
//	   the caller can tell lost leadership, its own compare failing, and an
//	   unknown outcome apart.
//	G5 Candidates win in create-revision order. Each waits on exactly one key,
//	   and with heartbeats on that one's beat; one departure wakes exactly one waiter.
//	G6 An observer never reports a token lower than one it has reported. It may
//	   skip tenures. It does report "nobody" and "I do not know".
//	G7 The user's lead function never overlaps itself in one process: functions
//	   under Lead take turns, over all tenures of a Candidate and over all
//	   candidates that share an election.Mutex.
//	G8 Nothing is left behind: whatever ends a campaign (its context, a lost reply,
//	   compaction, an error), its key is removed, at the latest with the lease.
//
// # Compatibility
//
// Keys are laid out and ordered as by etcd's own elections, so processes using
// etcd's concurrency package, etcdctl elect or the v3election service can stand in
// the same election. Such candidates do not share these guarantees: one of them
// may believe itself leader after its key is gone. The guard still refuses it
// whatever it sends through a guard, and nothing else.
package eldest
