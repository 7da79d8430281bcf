// Package wiretap is a transparent proxy between etcd's clients and etcd, which records every
// request, every answer and every event, in order.
//
//	tap, err := wiretap.Start(wiretap.Config{Endpoints: endpoints, Record: func(m *wiretap.Message) { ... }})
//	if err != nil { ... }
//	defer tap.Close()
//	// tap.Endpoint() is what a client dials in place of etcd.
//
// # Not guaranteed
//
// Times are those of the proxy, not of etcd; the proxy adds some tenths of a millisecond each way.
// Only gRPC is served: etcd's HTTP (/health, /metrics, the gateway) is not. The proxy has no access
// control: it listens on 127.0.0.1 without TLS, and any process that can connect to it may use the
// certificate that it was given for etcd. It has no user: the clients' credentials are passed on.
//
// # Order
//
// A message is recorded before it is passed on. So a request is recorded before its effects, and an
// answer or an event before what the client does because of it. Messages of which neither caused
// the other are recorded in the order in which they arrived.
//
// # Frames
//
// A call is relayed as a stream of frames in both directions, whatever its method is; it is not
// decoded on its way, so that unknown methods pass as well. For the record the frame is decoded by
// the name of its method, if etcd's API has it. Metadata, time limits, half-closing, statuses and
// trailers are passed on unchanged. Each connection of a client has its own connection to etcd,
// which ends with it.
//
// # Lanes
//
// Each client is a lane. Its name is the client's user agent (grpc.WithUserAgent); connections
// without one are named client, client-2 and so on. Two connections with one name are one lane.
//
// Passwords and tokens are not recorded.
//
// # The gate
//
// Config.Gate decides about each single message: whether it is passed on, and when. While it holds a
// message, those that follow are received and recorded, up to a limit; they keep their order.
package wiretap
