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
// Durability: without a data directory of the caller's the members do not wait
// for the disk, and Close removes everything. Isolation: all members share one
// process, so its death is the death of all; tests that need members that die
// one by one start them as processes. Security: the members listen on 127.0.0.1
// without TLS, whoever can reach that can do everything.
//
// # Members
//
// Start makes a new cluster by static bootstrap: every member is told the whole
// list. The members are started one after another without waiting in between,
// because none is ready before a majority of them runs. That takes 60 to 90 ms at
// a heartbeat of 10 ms. Side by side it takes seconds: a new member asks the others
// whether they have started, and one that listens but does not answer yet lets the
// question run into its timeout of a second.
//
// With Config.Dir, the layout of the cluster (names, ports, token) is written to
// cluster.json in that directory, and a later Start with the same directory
// brings the same cluster back, on the same ports: the members know each other
// by them.
package devcluster
