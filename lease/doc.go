// Package lease keeps an etcd lease alive and knows, without asking anybody,
// until when it certainly lives. It knows time, not elections.
//
// Not guaranteed: that code which ignores the session's context stops in time,
// nor anything about clocks that run at rates differing by more than
// margin / TTL.
//
// # The deadline
//
// The server counts the TTL from the moment at which it handles a renewal. The
// client cannot know that moment, but it knows one that is earlier: the instant
// before it sent the request. So
//
//	deadline = time before the renewal was sent + granted TTL - margin
//
// is never later than the server's expiry, whatever the network does and however
// long the reply takes; the margin covers a client clock that runs slower than
// the server's. (Counting from the receipt of the reply, as etcd's own client
// does, lets two leaders coexist for as long as the reply was under way.) A reply
// that is read after the deadline proves nothing and is ignored: the process may
// have been stopped while it waited in a buffer.
//
// The arithmetic, like all that a session decides, is in internal/core, free of I/O and clocks.
//
// # The majority
//
// etcd's leader answers renewals by itself, even when it was stopped, has been
// replaced and does not know it yet; its successor then expires the lease earlier than
// the answer says. So after each answer the session asks for the list of members, which
// only a majority can give, and counts the renewal if that is of no later Raft term.
// Sessions of one client share the question: one answer confirms all renewals that were
// answered before it was sent. The answers of a gRPC proxy carry no Raft term and count as they are.
// Where Config.Lease cannot ask, Config.Majority does, or is Unconfirmed.
//
// # The clock
//
// Deadlines are read on a clock that goes on while the machine sleeps
// (CLOCK_BOOTTIME on Linux). Go's monotonic clock stops there, so a laptop that
// wakes up after an hour would believe that its lease is fresh. What no clock of a
// virtual machine shows is a pause during which the hypervisor stops that clock too;
// against it there are only the guard and the token. The deadline is
// checked at each use (Holds, Status) and by a timer, not by polling.
//
// # Sessions
//
// A Session is the client side of one lease. Open grants, Resume adopts a lease
// that an earlier life of the process left, Close revokes, Abandon leaves the
// lease to expire. In between it is renewed about every TTL/4, with
// jitter, each attempt with a time-out of about TTL/12 of its own, and asked once more
// when half of that has gone by, so that a member which swallows requests costs half an
// attempt and not the lease. So Config.Lease and Config.Majority are called by several
// goroutines at a time. A session at rest has none.
//
// Sessions with the same *clientv3.Client renew on one stream, and those that are nearly due renew
// together. A renewal that is not answered there is sent once more as a single request. Other
// implementations of clientv3.Lease renew by single requests, KeepAliveOnce.
//
//	Alive --renewal overdue--> AtRisk --renewed--> Alive
//	Alive, AtRisk --deadline, lease gone, Close, Abandon--> Lost (for good)
//
// A Session's Context ends with the session; its cause says why. Many elections
// may share one session.
//
// # Heartbeats
//
// A leader whose machine dies is replaced when its lease expires: after seconds. With Config.Heartbeat it is
// replaced after half a second or one. The session then puts a key every quarter of that while one of its
// candidates leads, and the candidate behind it deletes the leader's key when no beat has come for the whole of
// it. The lease stays, as the fallback.
//
// The leader's second deadline is that of a beat:
//
//	deadline = time before the beat was sent + timeout - margin
//
// and it counts for beats that etcd has acknowledged before it. When it passes, all tenures of the session are
// suspended: their contexts end, their keys stay. The session beats on, and the next Campaign or Await proves
// in one read that the key is there still, and leads on with the same token. So a pause of etcd that is
// longer than the timeout suspends leaders, and moves none.
//
// Decision 0029 in docs/decisions has the protocol and why two never lead. It assumes that the rates of the
// clocks of all candidates differ by less than margin / timeout among each other.
//
// # The application's pulse
//
// The session renews for as long as the process runs. An application that may hang
// while its network is fine gives the session a Pulse, and beats where it makes
// progress; without beats the session stops renewing, and the lease ends by itself.
//
// # The client
//
// A session is as quick as the client it is given. A connection on which nothing
// arrives any more goes unnoticed without keepalives: set DialKeepAliveTime and
// DialKeepAliveTimeout in clientv3.Config (gRPC takes no less than 10 s for the
// former). The session copes without them, for it bounds each attempt; but attempts are
// then all it has.
//
// Set Logger to one that writes errors only. By default the client writes a warning to stderr
// for each request that is refused, and in an ordinary hand-over a candidate may be refused: it
// asks a single member for a revision that this one has not reached, and then the next one.
// What fails and is repeated is reported by hooks instead.
//
//	Logger: zap.Must(zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))),
//
// After failures gRPC waits up to 120 s before it connects again, longer than most
// leases live. So after each attempt of its own that failed, a session has a
// *clientv3.Client connect at once; the pauses are then those of Config.Backoff. For
// clients of other kinds set grpc.WithConnectParams with a MaxDelay of a second or two
// in clientv3.Config.DialOptions.
//
// Leave AutoSyncInterval of such a client at 0, and call neither Sync nor SetEndpoints while
// sessions, candidates or observers use it. To connect at once gRPC walks through its
// connections without its lock (ClientConn.ResetConnectBackoff, up to 1.85 at least), and
// endpoints that come or go at that moment end the process: "concurrent map iteration and
// map write". Where endpoints must change, make a new client, or give this package one of
// another kind, such as a struct in which the *clientv3.Client is embedded.
package lease
