// Package curator is a gRPC server of which one instance leads. Every instance listens
// always, and answers every call like the leader: the leader serves it, a follower
// forwards it to the leader, and a node that knows of no leader waits for one.
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
// that, it does beside the next leader. So whatever it writes to etcd it writes through
// the tenure's guard (elector.Leadership, G4), and to other stores with its token.
//
// # One hop
//
// A forwarded call carries the token of the tenure that it is meant for. Whoever gets it
// serves it in this very tenure, or refuses it; it is never forwarded again, so nodes that
// take each other for the leader end it after one hop. Nothing is ever sent a second
// time: what has left for the leader may have been carried out. Of each attempt of a
// caller's a handler is called at most once. A call that has not left, because there is no
// connection to be had, waits like one without a leader, and goes where the leader is then.
//
// Forwarding needs no generated code. Messages are moved as they are, one at a time in
// each direction, so that any method of any service passes, whatever its codec and
// however it streams, with metadata both ways, deadline, cancellation, status and its
// details. The hop itself is not compressed. What the service sees of a forwarded call
// that differs: peer.FromContext is the node that forwarded it. Metadata that HTTP/2 lets
// through and gRPC's own client does not send, such as texts in UTF-8, passes as well. Metadata whose keys begin
// with "eldest-" is the curators' own.
//
// # Codes
//
// The service's own answer passes unchanged, but for the details named below. In its place a caller may get
//
//	UNAVAILABLE        the request can be retried, at any node: leadership was lost, the
//	                   leader could not be reached or died, the node is stopping, or no
//	                   leader was known in time; with curatorpb.LostLeadership in the
//	                   details, unless it was the caller's own connection that broke
//	DEADLINE_EXCEEDED  the caller's deadline has passed, also while it waited for a leader
//	CANCELED           the caller cancelled
//	UNIMPLEMENTED      the leader serves no such method
//	INVALID_ARGUMENT   metadata of a hop that no curator wrote
//	INTERNAL           more metadata than the leader accepts, a unary call without exactly
//	                   one message, or a message that its codec cannot read or write
//	PERMISSION_DENIED  a hop of somebody who is not the node (Config.VerifyHop)
//	RESOURCE_EXHAUSTED a message over Config.MaxMessage
//
// A handler's error that wraps a guard's refusal (eldest.ErrDeposed, ErrNotLeading,
// ErrSessionLost) becomes UNAVAILABLE, and so does context.Canceled in a tenure that has
// ended. The same from another election's guard, or a fence for another election's tokens
// (FAILED_PRECONDITION), is the service's own answer. LostLeadership (see the
// function of that name) says in nothing_applied whether the request can be sent again
// without a thought: it was refused before a handler saw it, or a unary handler says so
// (NothingApplied); a handler that does not may have written before. Such details in what a
// handler returns are removed: another curator has sent them, about another request. A
// client asks for the election that it has called. Any other error of a
// handler's that has no status is UNKNOWN, as in gRPC, and a panic ends the process, as in
// gRPC, unless an interceptor recovers.
//
// The header of a unary call is forwarded with its answer, that of a stream at once.
//
// # A tenure
//
// Config.Services is called for each tenure, and what it registers is gone with it. At
// the end of a tenure calls wait for the next leader; handlers' contexts end; a handler
// that sits in a receive or a send, or does not return within Config.Grace, is answered
// for. The next tenure, of this node or another, begins when all have returned, or,
// where it was etcd or the deadline that ended this one, without waiting (G3).
//
// # What every node answers itself
//
// The services of Config.Local, and three of the curator's own, at every node and in
// every state: Curator.CurrentLeader of package curatorpb, a stream of who leads; gRPC's
// health service, where "" is whether calls are answered, "leader" whether this node
// leads and "alive" whether it is there; and, as an HTTP handler, RoleHandler.
//
// # Dead leaders
//
// While calls to the leader are in flight its health service is asked each second. After
// two silences of two seconds the connection is closed and the calls end (UNAVAILABLE).
// Where grpc.MaxConcurrentStreams is reached nothing can be asked, and gRPC's pings have to
// do: 13 seconds.
// When another tenure is known, the connection to the leader of the last one is closed
// as soon as the calls there have ended, or after Config.Grace.
package curator
