// Package echo is a gRPC service that returns what it receives, and its callers. The service can be
// reached in three ways, which package bench compares:
//
//	direct     a caller -> the curator node that leads
//	forwarded  a caller -> a curator node that follows -> the node that leads
//	floor      a caller -> a gRPC server without a curator
//
// All servers and callers are in one process, connected by TCP on the loopback interface and without
// TLS. The two nodes are candidates of one election on a real etcd. Messages are
// google.protobuf.BytesValue, so each is encoded and decoded once at the caller and once at the
// handler, as in any service.
//
// The handler counts each call by the way that it took, which it reads from the hop
// (curator.Forwarded). So a measurement can check that its calls took the way that it claims.
//
// # Not guaranteed
//
// That the first node leads for as long as the service runs: if etcd does not answer for a minute,
// its lease expires. Then calls fail, or are counted for another way.
package echo
