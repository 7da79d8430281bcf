// Package curator is a gRPC server of which one instance leads. Every instance listens
// always, and answers every call like the leader: the leader serves it, a follower
// forwards it to the leader, and where no leader is known the call waits for one.
//
//	c, err := curator.New(curator.Config{
//		Elector:  elector.Config{Election: "orders", NodeID: "n1", Source: ...},
//		Listener: listener,
//		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
//			orderspb.RegisterOrdersServer(r, orders.New(l)) // writes through l.Txn
//			return nil
//		},
//	})
//	if err != nil { ... }
//	err = c.Run(ctx) // serves until ctx ends
//
// Not guaranteed: that a handler stops in time. A handler begins only in a tenure that
// holds at that moment, and its context ends with the tenure; but what it does after
// that, it does at the same time as the next leader. So it must write to etcd through
// the tenure's guard (elector.Leadership, G4), and to other stores with its token.
//
// # One hop
//
// A forwarded call carries the token of the tenure that it is meant for. The node that receives
// it serves it in this very tenure, or refuses it; it is never forwarded again, so nodes that
// take each other for the leader end each attempt after one hop. What may have reached a handler
// is never sent a second time: for each call of a caller a handler is called at most once.
//
// A call that has not begun waits for the next leader, for Config.Wait: where none is known,
// the leader cannot be connected to, or it answers that the call has not reached a handler,
// because it stops or has lost leadership. Then all of the call is sent to the next leader, streams
// as well: what was sent is kept until the call has begun. A unary call begins when its message has
// arrived. A leader that stops announces it first, and the other nodes hold new calls for its
// successor; the node that stops does the same, and forwards them.
//
// What the caller takes to send its message does not count as waiting. How many calls wait, and
// what is kept for them, is bounded (Config.MaxWaiting, MaxHeld), and one caller never uses all of it.
//
// Forwarding needs no generated code. Messages are moved as they are, one at a time in
// each direction, so that any method of any service passes, whatever its codec and
// however it streams, with metadata both ways, deadline, cancellation, status and its
// details. The hop itself is not compressed. One thing differs for the service: peer.FromContext is
// the node that forwarded the call (see Caller). Metadata that HTTP/2 allows and gRPC's own client does
// not send, such as texts in UTF-8, passes as well. Keys of metadata that begin with "eldest-" are
// reserved.
//
// # Codes
//
// The service's own answer passes unchanged, but for the details named below. Instead a caller may
// receive
//
//	UNAVAILABLE        the request can be retried, at any node: leadership was lost, the
//	                   leader could not be reached or died, the node is stopping, or no
//	                   leader was known in time; with curatorpb.LostLeadership in the
//	                   details, unless it was the caller's own connection that broke
//	DEADLINE_EXCEEDED  the caller's deadline has passed, also while it waited for a leader
//	CANCELED           the caller cancelled
//	UNIMPLEMENTED      the leader serves no such method
//	INVALID_ARGUMENT   metadata of a hop that no curator wrote, or an eldest-read that
//	                   cannot be understood
//	INTERNAL           more metadata than the leader accepts, a unary call without exactly
//	                   one message, or a message that its codec cannot read or write
//	PERMISSION_DENIED  a hop that another sender has forged (Config.VerifyHop)
//	RESOURCE_EXHAUSTED a message over Config.MaxMessage; or too many calls wait, or too
//	                   large ones, with curatorpb.LostLeadership in the details
//
// A handler's error that wraps a guard's refusal (eldest.ErrDeposed, ErrNotLeading,
// ErrSessionLost) becomes UNAVAILABLE, and so does context.Canceled in a tenure that has
// ended. The same from another election's guard, or a fence for another election's tokens
// (FAILED_PRECONDITION), is the service's own answer. The detail LostLeadership (see the
// function of that name) has nothing_applied if the request can safely be sent again: it was
// refused before it reached a handler, or a unary handler reports it (NothingApplied); a handler
// that does not may have written before. Such details are removed from what a
// handler returns: another curator has sent them, about another request. A
// client looks for those of the election that it has called. Any other error of a
// handler without a status is UNKNOWN, as in gRPC, and a panic ends the process, as in
// gRPC, unless an interceptor recovers.
//
// The header of a unary call is forwarded with its answer, that of a stream at once.
//
// # Callers
//
// Caller returns the caller's verified certificate, on a direct call and on a forwarded one:
// the follower passes on the certificate that its listener has verified, and the leader
// accepts it if it has verified the hop. The header compression of the hop stores
// about five small certificates for each connection; others are sent in full with each call.
//
// # Reads at followers
//
// A node answers the services of Config.Reads from its own copy of the data, for callers that
// allow it: with AllowLocalRead, or with the metadata on the left. The header of the answer, on the
// right, names the node that has answered (ReadFrom), also where the service returns an error.
//
//	eldest-read: local                  eldest-read: local; age=1.204s; node="b"
//	eldest-read: local; max-age=2s      eldest-read: leader; token=7
//
// All other calls go to the leader: where the caller does not allow it, where this node leads,
// and where the copy is older than max-age or its age is unknown (Config.ReadAge). A local
// read needs no leader; it is answered also while none is known and while the node stops.
//
// Only the age is guaranteed. What was written in the last age before the call came may be
// missing, also the caller's own write, unless maxAge is the time since that write; and a
// later call at another node may see an older state. There is no tenure and no guard: the
// answer is not fenced, and a stream grows older than its header says. A write that depends
// on such a read must compare what was read.
//
// # A tenure
//
// Config.Services is called for each tenure, and what it registers ends with the tenure. Then
// new calls wait for the next leader, and handlers' contexts end; a call whose handler
// is in a receive or a send, or does not return within Config.Grace, is answered
// without it. The next tenure, of this node or another, begins when all handlers have returned, or,
// if etcd or the deadline ended this one, without waiting (G3).
//
// # What every node answers itself
//
// The services of Config.Local, and three of the curator's own, at every node and in
// every state: Curator.CurrentLeader of package curatorpb, a stream of leaders; gRPC's
// health service, where "" is whether calls are answered, "leader" whether this node
// leads, "serving" whether it serves as the leader and "alive" whether it answers at all; and, as an
// HTTP handler, RoleHandler. A node that is stopping answers NOT_SERVING, and 503.
//
// # Connections
//
// A follower has up to four connections for calls to the leader. The calls of one caller share
// one of them while any is in flight, so that a caller whose streams are not read delays only
// itself. One more connection is for a watch of the leader's health and, while calls are in
// flight, for a heartbeat each second. After two heartbeats without an answer for two
// seconds all connections are closed and the calls end (UNAVAILABLE). Where
// grpc.MaxConcurrentStreams is 1 there are no heartbeats, only gRPC's pings: 13 seconds.
// When another tenure is known, the connections to the leader of the last one are closed
// as soon as the calls there have ended, or after Config.Grace.
package curator
