// Package lease keeps an etcd lease alive and computes a deadline until which the lease certainly
// exists. It has no knowledge of elections.
//
// # Not guaranteed
//
//   - Code that ignores the session's context may continue after the session.
//   - Nothing is guaranteed if the rates of the clocks differ by more than margin / TTL.
//
// # The deadline
//
// The server counts the TTL from the moment at which it handles a renewal. The client cannot know
// that moment, but it knows an earlier one: the instant before it sent the request. So
//
//	deadline = time before the renewal was sent + granted TTL - margin
//
// is never later than the server's expiry, whatever the network does and however long the reply
// takes; the margin covers a client clock that runs slower than the server's. (etcd's own client
// counts from the receipt of the reply, so that two leaders may exist for as long as the reply was
// on its way.) A reply that is read after the deadline proves nothing and is ignored: it may have
// waited in a buffer while the process was stopped.
//
// The arithmetic, like all decisions of a session, is in internal/core, without I/O and clocks.
//
// # The majority
//
// etcd's leader answers renewals without asking the other members, even when it was stopped, has
// been replaced and has not noticed that yet; its successor then expires the lease earlier than the
// answer implies. So after each answer the session requests the list of members, which needs a
// majority, and counts the renewal if that reply has no later Raft term. Sessions of one client
// share the request: one reply confirms all renewals that were answered before it was sent. The
// answers of a gRPC proxy have no Raft term and count without a confirmation. If Config.Lease
// cannot list the members, set Config.Majority to a client that can, or to Unconfirmed.
//
// # The clock
//
// Deadlines are read on a clock that continues while the machine is suspended (CLOCK_BOOTTIME on
// Linux). Go's monotonic clock stops then: after an hour of sleep a laptop would count its lease as
// fresh. If a hypervisor pauses a virtual machine and stops that clock too, no clock shows the
// pause; only the guard and the token help then. The deadline is checked at each use (Holds,
// Status) and by a timer, not by polling.
//
// # Sessions
//
// A Session is the client side of one lease. Open grants a lease, Resume adopts one that an earlier
// process left, Close revokes it, Abandon leaves it to expire. In between the session renews it
// about every TTL/4, with jitter. Each attempt has a time-out of its own of about TTL/12 and is
// hedged when half of that has passed, so that a member that swallows requests costs half an
// attempt and not the lease. So several goroutines may call Config.Lease and Config.Majority at a
// time. An idle session has no goroutine.
//
// Sessions with the same *clientv3.Client renew on one stream, and those that are nearly due renew
// together. A renewal that is not answered there is sent again as a single request. Other
// implementations of clientv3.Lease renew by single requests, KeepAliveOnce.
//
//	Alive --renewal overdue--> AtRisk --renewed--> Alive
//	Alive, AtRisk --deadline, lease expired or revoked, Close, Abandon--> Lost (for good)
//
// A Session's Context ends with the session; its cause is the reason. Many elections may share one
// session.
//
// # Heartbeats
//
// A leader whose machine crashes is replaced when its lease expires: after seconds. With
// Config.Heartbeat it is replaced after half a second or one; the lease remains as the fallback. The
// leader's second deadline is that of a heartbeat that etcd has acknowledged before it:
//
//	deadline = time before the heartbeat was sent + timeout - margin
//
// When it passes, all tenures of the session are suspended: their contexts end, their keys remain. The
// next Campaign or Await proves in one read that the key still exists, and continues to lead with the
// same token. So a pause of etcd that is longer than the timeout suspends leaders and replaces none.
// Decision 0029 in docs/decisions has the protocol and the reason why two candidates never lead. It
// assumes that the rates of the clocks of any two candidates differ by less than margin / timeout.
//
// # The application's liveness probe
//
// The session renews for as long as the process runs. An application that may hang while its
// network works sets Config.Liveness, and calls Liveness.Alive where it makes progress. Without
// these calls the session stops renewing, and the lease expires.
//
// # The client
//
// Use elector.Dial. Its clients have all of the settings below, follow etcd's members when these are
// replaced, and their endpoints may change at any time. For a client made otherwise:
//
//   - Set DialKeepAliveTime and DialKeepAliveTimeout in clientv3.Config (gRPC takes no less than 10 s
//     for the former). Without them the client does not detect a connection on which nothing arrives
//     any more, and the session depends on the time-out of each attempt alone.
//   - Set Logger to one that writes errors only. By default the client writes a warning to stderr for
//     each refused request, which is a part of ordinary hand-overs: a candidate asks a single member
//     for a revision that this member has not reached, and then asks the next one.
//   - Set grpc.WithConnectParams with a MaxDelay of a second in DialOptions. After failures gRPC waits
//     up to 120 s before it connects again, longer than most TTLs. A session only has a
//     *clientv3.Client connect at once that has had no connection at two failed attempts in a row.
//   - Do not call SetEndpoints while the client has no connection: in the microseconds in which a
//     session has it connect at once, the process can crash ("concurrent map iteration and map
//     write"), because ClientConn.ResetConnectBackoff of gRPC, up to 1.85 at least, iterates over its
//     connections without its lock. Sync and AutoSyncInterval change endpoints only after etcd has
//     answered, when a session does not do that; they replace the endpoints by all URLs of the members,
//     including those that cannot be reached from here. Decision 0033 in docs/decisions has the details.
//
// This logger writes errors only:
//
//	Logger: zap.Must(zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))),
package lease
