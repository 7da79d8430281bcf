// Package devcluster runs an etcd cluster of one, three or five members inside
// this process, for development, demonstrations and nothing else.
//
//	c, err := devcluster.Start(ctx, devcluster.Config{Members: 3})
//	if err != nil { ... }
//	defer c.Close()
//	// c.Endpoints() is what a client dials.
//
// # Not guaranteed
//
// Durability: without a data directory of the caller's the members do not wait for the disk, and
// Close removes everything. Isolation: all members share one process, and its death ends all of them;
// tests whose members must end one by one start them as processes. Security: the members listen on
// 127.0.0.1 without TLS, and a client that can reach that address can do everything.
//
// # Members
//
// Start makes a new cluster by static bootstrap: every member receives the whole list. The members
// are started one after another without waiting in between, because none is ready before a majority
// of them runs. That takes 60 to 90 ms at a heartbeat of 10 ms. A concurrent start takes seconds: a
// new member checks whether the others have started, and if one of them listens but does not answer
// yet, the request waits for its timeout of a second.
//
// With Config.Dir, the layout of the cluster (names, ports, token) is written to cluster.json in that
// directory, and a later Start with the same directory starts the same cluster again, on the same
// ports: the members use them as their addresses.
package devcluster
