// Package resolver connects a gRPC client to the leader: a target eldest:///<election>
// resolves to one address, that of the node which leads.
//
// Not guaranteed: that the node at that address still leads when a call arrives. It led when
// the address was published. A leader-elected service of package curator forwards calls that
// reach a node which does not lead, so they only take one hop more.
//
// # Where the leader is learned
//
// FromEtcd watches etcd, with one watch for each client connection. FromNodes asks the
// nodes of the service, for clients that have no access to etcd: each node of a curator
// streams the leader and each change. If the stream ends, or the node does not know the
// leader for a while, the next node of the list is asked. The pause before it doubles from
// failure to failure and is random, so that a thousand clients of a node that died do not
// reach the next one together.
//
//	builder, err := resolver.FromNodes(resolver.NodesConfig{Addresses: nodes})
//	...
//	conn, err := grpc.NewClient(resolver.Target("reports"), grpc.WithResolvers(builder), ...)
//
// # What is published
//
// Exactly one address, the leader's. While there is no leader, or it is not known, the last
// address stays; a node there answers or refuses the calls. Before the first leader is known
// there is no address, and the reason is reported: calls fail with Unavailable and that
// reason, unless they wait (grpc.WaitForReady).
//
// Tokens never go back (G6): a leader with an older token than the last one is ignored, in
// whatever order nodes are asked. A leader without an address changes nothing. After
// etcd was restored from a backup tokens begin lower than they were, and a client needs
// a new connection.
//
// With each tenure a new connection is made, and gRPC closes the old one gracefully:
// calls that are in flight there may finish. This holds for the same address, too: a
// node that came back and leads again is connected to at once, whatever the back-off was
// before. For a leader that is partitioned from the client and goes on leading,
// the back-off is gRPC's, up to two minutes unless grpc.WithConnectParams sets another.
//
// # Certificates
//
// By default the nodes' certificates must be valid for the name in the target, which is
// the election's, or for that of grpc.WithAuthority: one name that all nodes share,
// and that the client knows beforehand. ServerName in either config makes it a name of each
// node's own. That name then comes from etcd, or from a node, and is as trustworthy as those.
//
// # What it costs
//
// One goroutine for each client connection, and that of an observer or the connection
// to one node. All of it has ended when ClientConn.Close returns, and while the connection is
// idle. ResolveNow, with which gRPC reports that an address does not answer, does nothing:
// changes arrive by themselves, and a request would not replace a dead leader any sooner.
package resolver
