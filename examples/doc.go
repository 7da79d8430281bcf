// Package examples holds four programs to start from; it has no code of its own.
//
//	examples/elector   a process of which one instance works at a time, without gRPC
//	examples/curator   a node of a gRPC service of which one instance leads
//	examples/client    a client of that service that goes on when leaders die
//	examples/shards    a process that leads its share of many elections, on one session
//
// Not guaranteed: that they have what a service in production has beside its leader:
// metrics, certificates that are renewed while it runs, a configuration file. What they
// do about leaders, they do as it should be done.
//
// They import what anybody can import, so each can be copied into a module of its own,
// and builds there:
//
//	go mod init example.org/mine
//	go get github.com/eldest-io/eldest
//
// # Trying them
//
// With an etcd at 127.0.0.1:2379 ("eldest etcd --client-port 2379" is one), each line in a terminal of
// its own:
//
//	go run ./examples/curator --node n1 --listen 127.0.0.1:7001
//	go run ./examples/curator --node n2 --listen 127.0.0.1:7002
//	go run ./examples/curator --node n3 --listen 127.0.0.1:7003 --http 127.0.0.1:8003
//	go run ./examples/client --nodes 127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003
//
// The shards need nobody to assign them; start and end as many processes as you like:
//
//	go run ./examples/shards --node n1
//	go run ./examples/shards --node n2
//	go run ./examples/shards --node n3
//
// Of the service, end the node that leads, with Ctrl-C or with SIGKILL, and see the client go on:
// at once after the former, after the nodes' TTL after the latter.
package examples
