// Package resolver connects a gRPC client to the leader: a target eldest:///<election> resolves to
// one address, that of the node that leads.
//
// Not guaranteed: that the node at that address still leads when a call arrives. It led when
// the address was published. A leader-elected service of package curator forwards calls that
// reach a node which does not lead, so they only take one hop more.
//
// # Where the leader comes from
//
// FromEtcd watches etcd, with one watch for each client connection. FromNodes queries the nodes of
// the service, for clients that have no access to etcd: each node of a curator streams the leader
// and each change. If the stream ends, or the node reports no leader for a while, the next node of
// the list is queried. The pause before that doubles from failure to failure and is random, so that
// a thousand clients of a node that crashed do not connect to the next one at the same time.
//
// The list grows: the last eight leaders that were reported are queried as well, after the nodes of
// the config. So a connection follows the leader when all the nodes of its config have been
// replaced. Nodes that have not led since the connection was made are not learned: if the config
// has one node, and that one is the first leader and crashes, the client waits until it is back.
// All connections of one builder to an election share what they have learned, also those that were
// idle. A new builder begins with the config.
//
//	builder, err := resolver.FromNodes(resolver.NodesConfig{Addresses: nodes})
//	...
//	conn, err := grpc.NewClient(resolver.Target("reports"), grpc.WithResolvers(builder), ...)
//
// # What is published
//
// Exactly one address, the leader's. While there is no leader, or the leader is unknown, the last
// address stays; a node there answers or refuses the calls. Before the first leader there is no
// address, and the reason is reported: calls fail with Unavailable and that reason, unless they
// wait (grpc.WaitForReady).
//
// The address is the one that Endpoints has for the leader's node ID, or else the one that the
// leader publishes. A leader with neither changes nothing: an empty address is never published.
//
// Tokens never decrease (G6): a leader with an older token than the last one is ignored, in
// whatever order the nodes are queried. After etcd was restored from a backup, tokens are lower
// than before, and a client needs a new connection.
//
// A connection without calls becomes idle, after 30 minutes unless grpc.WithIdleTimeout sets another
// time. At the next call it begins anew: it has no address until the leader is reported, and
// accepts any token.
//
// With each tenure a new connection is made, and gRPC closes the old one gracefully: calls that are
// in flight on it may finish. This holds for the same address, too: a node that came back and leads
// again is connected to at once, whatever the back-off was before. If a leader is partitioned from
// the client and goes on leading, gRPC's back-off applies: up to two minutes, unless
// grpc.WithConnectParams sets another.
//
// # Certificates
//
// By default the nodes' certificates must be valid for the name in the target, which is the
// election's, or for that of grpc.WithAuthority: one name that all nodes share and that the client
// has beforehand. With ServerName in either config each node has a name of its own. That name then
// comes from etcd, or from a node, and is only as trustworthy as its source. A client that uses an
// HTTP proxy (HTTPS_PROXY) needs grpc.WithNoProxy for that: through a proxy gRPC verifies the name
// in the target.
//
// # What it costs
//
// One goroutine for each client connection, and that of an observer or the connection to one node.
// All of it has ended when ClientConn.Close returns, and while the connection is idle. ResolveNow,
// with which gRPC reports that an address does not respond, does nothing: changes arrive by
// themselves, and a request would not replace a crashed leader any sooner.
package resolver
