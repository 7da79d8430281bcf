// Package devcluster runs an etcd cluster of one, three or five members inside
// this process, for development, demonstrations and nothing else.
//
//	c, err := devcluster.Start(ctx, devcluster.Config{Members: 3})
//	if err != nil { ... }
//	defer c.Close()
//	// c.Endpoints() is what a client dials.
//
// The members are started one after another without waiting in between, because none is ready before
// a majority of them runs. A concurrent start takes seconds: a new member checks whether the others
// have started, and if one of them listens but does not answer yet, the request times out after a
// second.
//
// With Config.Dir, the names, ports and token of the cluster are written to cluster.json in that
// directory, and a later Start with the same directory starts the same cluster again, on the same
// ports: the members use them as their addresses.
//
// # Not guaranteed
//
// Durability: without a data directory of the caller's the members do not wait for the disk.
// Isolation: the death of this process ends all members; package etcdtest starts members as processes.
// Security: the members listen on 127.0.0.1 without TLS.
package devcluster
