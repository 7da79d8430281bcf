// Package curator is a gRPC server of which one instance leads. Every instance always listens and
// answers every call: the leader serves the call, a follower forwards it to the leader, and while
// no leader is known the call waits for one.
//
//	c, err := curator.New(curator.Config{
//		Elector:   elector.Config{Election: "orders", NodeID: "n1", Source: ...},
//		Listeners: []curator.Listener{{Listener: listener}},
//		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
//			orderspb.RegisterOrdersServer(r, orders.New(l)) // writes through l.Txn
//			return nil
//		},
//	})
//	if err != nil { ... }
//	err = c.Run(ctx) // serves until ctx ends
//
// A handler begins only in a tenure that holds at that moment, and its context ends with the
// tenure. That the handler stops in time is not guaranteed: what it does after the end of the
// tenure is concurrent with the next leader. So it must write to etcd through the tenure's guard
// (elector.Leadership, G4), and to other stores with its token.
//
// # One hop
//
// A forwarded call carries the token of the tenure that it is meant for. The node that receives it
// serves it in exactly this tenure or refuses it, and never forwards it again. So each attempt ends
// after one hop, also between nodes that take each other for the leader. A call that may have
// reached a handler is never sent again: for each call of a caller a handler is called at most
// once.
//
// A call that has not begun waits for the next leader, for at most Config.Wait, if no leader is
// known, if the leader cannot be connected to, or if the leader answers that the call has not
// reached a handler because the leader is stopping or has lost leadership. Then the whole call is
// sent to the next leader, streams included: what the caller sent is kept until the call has begun.
// A unary call begins when its message has arrived; the time in which the caller sends it does not
// count as waiting. A leader that stops announces it first, and the other nodes hold new calls for its
// successor; the stopping node does the same, and forwards them. The number of waiting calls, and what is kept for them, is bounded
// (Config.MaxWaiting, MaxHeld), and one caller never uses all of it.
//
// A call does not wait, and is refused as one that has not begun, if the leader's address cannot be
// parsed, if Config.PeerCredentials returns no credentials for the leader, or if the server at its
// address has a certificate that they do not accept.
//
// Forwarding needs no generated code. Messages are passed on unchanged, one at a time in each
// direction, so any method of any service can be forwarded, with any codec and any kind of
// streaming, with metadata in both directions, deadline, cancellation, status and its details. The
// hop itself is not compressed. The service sees one difference: peer.FromContext returns the node
// that forwarded the call (see Caller). Metadata that HTTP/2 allows and gRPC's own client does not
// send, such as UTF-8 text, is forwarded as well. Metadata keys that begin with "eldest-" are
// reserved.
//
// # Codes
//
// The service's own answer is passed on unchanged, except for the details described below. A caller
// may instead receive
//
//	UNAVAILABLE        the request can be retried, at any node: leadership was lost, the
//	                   leader failed or could not be reached, the node is stopping, or no
//	                   leader was known in time; with curatorpb.LostLeadership in the
//	                   details, unless it was the caller's own connection that broke
//	DEADLINE_EXCEEDED  the caller's deadline has passed, also while it waited for a leader
//	CANCELED           the caller cancelled
//	UNIMPLEMENTED      the leader serves no such method
//	INVALID_ARGUMENT   hop metadata that no curator can have written, or a malformed
//	                   eldest-read
//	INTERNAL           more metadata than the leader accepts, a unary call without exactly
//	                   one message, or a message that its codec cannot read or write
//	PERMISSION_DENIED  a hop that another sender has forged (Config.VerifyHop)
//	RESOURCE_EXHAUSTED a message over Config.MaxMessage; or too many calls wait, or too
//	                   large ones, with curatorpb.LostLeadership in the details
//
// After DEADLINE_EXCEEDED and CANCELED the request may have been carried out, also later.
//
// A handler's error that wraps a guard's refusal (eldest.ErrDeposed, ErrNotLeading,
// ErrSessionLost) becomes UNAVAILABLE, and so does context.Canceled in a tenure that has
// ended. The same error from another election's guard, or from a fence for another election's
// tokens (FAILED_PRECONDITION), is the service's own answer. The detail LostLeadership (see the
// function of that name) has nothing_applied if the request can safely be sent again: it was
// refused before it reached a handler, or a unary handler reports it (NothingApplied); a handler
// that does not report it may have written before. LostLeadership details are removed from the
// errors that a handler returns: another curator has sent them, about another request. A client
// should use only the details of the election that it has called. Any other error of a handler
// without a status is UNKNOWN, as in gRPC. A panic ends the process, as in gRPC, unless an
// interceptor recovers.
//
// The header of a unary call is forwarded with its answer, the header of a stream at once.
//
// # Callers
//
// Caller returns the caller's verified certificate, for direct and for forwarded calls: the
// follower passes on the certificate that its listener has verified, and the leader accepts it if
// it has verified the hop. The header compression of the hop stores about five small certificates
// for each connection; others are sent in full with each call.
//
// # Reads at followers
//
// A node answers the services of Config.Reads from its own copy of the data, for callers that allow
// it: with AllowLocalRead, or with the metadata on the left. The header of the answer, on the
// right, names the node that answered (ReadFrom), also if the service returns an error.
//
//	eldest-read: local                  eldest-read: local; age=1.204s; node="b"
//	eldest-read: local; max-age=2s      eldest-read: leader; token=7
//
// All other calls go to the leader: if the caller does not allow a local read, if this node leads,
// and if the copy is older than max-age or its age is unknown (Config.ReadAge). A local read needs
// no leader; a node answers it also while no leader is known and while the node is stopping.
//
// Only the age is guaranteed. Writes that were made within that age before the call arrived may be
// missing, also the caller's own write, unless maxAge is the time since that write. A later call at
// another node may see an older state. There is no tenure and no guard: the answer is not fenced, and the data of a stream grows
// older than the age in its header. A write that depends on such a read must compare what was read.
//
// # A tenure
//
// Config.Services is called for each tenure, and what it registers ends with the tenure. Then new
// calls wait for the next leader, and handlers' contexts end. If a handler is in a receive or a
// send, or does not return within Config.Grace, its call is answered without it. If the handler of a
// stream of answers returns without an error after the end of the tenure, the caller receives
// UNAVAILABLE, because it could not detect that the stream is incomplete. The next tenure,
// of this node or another, begins when all handlers have returned; if etcd or the deadline ended
// this one, it begins without waiting (G3).
//
// # What every node answers itself
//
// Every node answers, in every state, the services of Config.Local and three of the curator's own:
// Curator.CurrentLeader of package curatorpb, a stream of leaders; gRPC's health service, where the
// name "" means that calls are answered, "leader" that this node leads, "serving" that it serves as
// the leader and "alive" that it answers at all; and, as an HTTP handler, RoleHandler. A node that
// is stopping answers NOT_SERVING, and 503.
//
// # Connections
//
// A node accepts connections at all of Config.Listeners, each with its own credentials, and serves
// the same at each of them. Other nodes dial one address, that of the leader's value or the one that
// elector.Config.AddressOf returns. The address may change within a tenure (SetAddress): then calls go
// to the new one, in the same tenure.
//
// A follower has up to four connections to the leader for calls; those of one caller share one of
// them while any is in flight, so a caller that does not read its streams delays only itself. One
// more connection is for a watch of the leader's health and, while calls are in flight, for a
// heartbeat each second. When two heartbeats have received no answer within two seconds, all
// connections are closed and the calls end (UNAVAILABLE). If grpc.MaxConcurrentStreams is 1 there
// are no heartbeats, only gRPC's pings, which take 13 seconds. When another tenure becomes known,
// the connections to the last leader are closed as soon as the calls there have ended, or after
// Config.Grace. When only another address of the leader becomes known, calls under way continue
// over the connections to the earlier address, at the last 16 of them, until the calls have ended
// or another tenure is known.
package curator
