// Package wiretap is a transparent proxy between etcd's clients and etcd, which reads along:
// every request, every answer and every event, in order.
//
//	tap, err := wiretap.Start(wiretap.Config{Endpoints: endpoints, Record: func(m wiretap.Message) { ... }})
//	if err != nil { ... }
//	defer tap.Close()
//	// tap.Endpoint() is what a client dials in place of etcd.
//
// # Not guaranteed
//
// That times are those of etcd: they are taken in the proxy, and passing through it takes
// some tenths of a millisecond each way. That what is no gRPC gets through: etcd's HTTP
// (/health, /metrics, the gateway) is not served. That the proxy keeps anybody out: it
// listens on 127.0.0.1 without TLS, and whoever can reach that may use the certificate that
// it was given for etcd. It has no user: what clients log in with passes through.
//
// # Order
//
// A message is recorded before it is passed on. So a request is recorded before whatever it
// causes, and an answer or an event before whatever the client does because of it. Messages
// of which neither caused the other are recorded in the order in which they came by.
//
// # Frames
//
// A call is relayed as a stream of frames in either direction, whatever its method is; it is
// not decoded on its way, so what the proxy does not know passes as well. For the record
// the frame is decoded by the name of its method, if etcd's API has it. Metadata, time
// limits, half-closing, statuses and trailers reach the other side as they are. Each
// connection of a client has one of its own to etcd, and ends with it.
//
// # Lanes
//
// Whoever stands on the client's side is a lane. Its name is what the client says of itself
// (grpc.WithUserAgent); the connections of those who say nothing are called client, client-2
// and so on. Two connections with one name are one lane.
//
// A lane can be cut off: what it sends and what is sent to it vanishes, and is recorded as
// lost, while its connection looks whole. When that is mended, the calls that lost
// something end with Unavailable: they can never be whole again.
//
// Passwords and tokens are not recorded.
package wiretap
