// Package resolver leads a gRPC client to the leader: a target eldest:///<election>
// has one address, that of the node which leads.
//
// Not guaranteed: that the node at that address still leads when a call gets there. It
// did, when it was published. A leader-elected service of package curator forwards
// what reaches a node that does not lead, so nothing is lost but a hop.
//
// # Where the leader is learnt
//
// FromEtcd asks etcd, with one watch for each client connection. FromNodes asks the
// nodes of the service, for clients that cannot reach etcd or may not: any one node of
// a curator's knows, and tells each change on a stream. If it stops telling, or does
// not know for a while, the next of the list is asked, after a pause that doubles from
// failure to failure and is drawn at random, so that a thousand clients of a node that
// died do not turn up at the next one together.
//
//	builder, err := resolver.FromNodes(resolver.NodesConfig{Addresses: nodes})
//	...
//	conn, err := grpc.NewClient(resolver.Target("reports"), grpc.WithResolvers(builder), ...)
//
// # What is published
//
// The leader's address, and nothing else: never several, never none. While nobody
// leads, or nobody knows, the last address stays; calls go there, and are answered or
// refused by a node that knows better. Before the first leader is known there is no
// address, and the reason is reported: calls fail with Unavailable and that reason,
// unless they wait (grpc.WaitForReady).
//
// Tokens never go back (G6): what a node tells that is behind does not count. So a
// client need not fear to be led to an older leader than the one it was led to before,
// whatever order it asks nodes in. A leader that says no address changes nothing. After
// etcd was restored from a backup tokens begin lower than they were, and a client needs
// a new connection.
//
// With each tenure a new connection is made, and gRPC closes the old one gracefully:
// calls that are in flight there may end there. That is so at the same address too: a
// node that came back and leads again is not kept waiting for by a back-off that grew
// while it was away. For a leader that is cut off from the client, and goes on leading,
// the back-off is gRPC's, up to two minutes unless grpc.WithConnectParams says otherwise.
//
// # Certificates
//
// By default the nodes' certificates must be valid for the name in the target, which is
// the election's, or for what grpc.WithAuthority says: one name that all nodes share,
// and that the client knows without having asked anybody. ServerName in either config
// takes a name of each node's own instead. It then comes from etcd, or from a node, and
// is worth what those are worth.
//
// # What it costs
//
// One goroutine for each client connection, and that of an observer or the connection
// to one node. All of it has ended when ClientConn.Close returns, and while gRPC has
// put the connection to sleep for being idle. ResolveNow, with which gRPC says that an
// address does not answer, asks nobody: news comes by itself, and a leader that died
// is not replaced any sooner by being asked for.
package resolver
