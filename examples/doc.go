// Package examples has four programs to start from; it has no code of its own.
//
//	examples/elector   a process of which one instance works at a time, without gRPC
//	examples/curator   a node of a gRPC service of which one instance leads
//	examples/client    a client of that service that continues when leaders crash
//	examples/shards    a process that leads its share of many elections, on one session
//
// Not guaranteed: that they have everything that a service in production has besides its leader:
// metrics, certificates that are renewed while it runs, a configuration file. Their handling of
// leaders is complete.
//
// They import only public packages, so each can be copied into a module of its own, and builds
// there:
//
//	go mod init example.org/mine
//	go get github.com/eldest-io/eldest
//
// # Trying them
//
// With an etcd at 127.0.0.1:2379 ("eldest etcd --client-port 2379" starts one), run each line in a
// terminal of its own:
//
//	go run ./examples/curator --node n1 --listen 127.0.0.1:7001
//	go run ./examples/curator --node n2 --listen 127.0.0.1:7002
//	go run ./examples/curator --node n3 --listen 127.0.0.1:7003 --http 127.0.0.1:8003
//	go run ./examples/client --nodes 127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003
//
// No process assigns the shards; start and end as many processes as you like:
//
//	go run ./examples/shards --node n1
//	go run ./examples/shards --node n2
//	go run ./examples/shards --node n3
//
// In the service, end the node that leads with Ctrl-C or with SIGKILL. The client continues: at
// once after Ctrl-C, after the nodes' TTL after SIGKILL.
package examples
