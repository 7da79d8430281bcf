// Package httpstatus serves the status of one participant in one election over HTTP, if --http is
// given: to Prometheus, to load balancers, and to tools that supervise processes.
//
//	/         the list of these paths
//	/metrics  the numbers of package metrics, of the Go runtime and of the process; those of
//	          calls where the participant is a node of a service
//	/healthz  200 while the participant can do its work, else 503
//	/leader   200 while this participant leads, else 503
//
// Not guaranteed: that /leader is still true when its answer has been read. It is for routing; the
// writes of a leader go through the guard.
//
// # Health
//
// A leader is healthy, and so is a follower, whose work is to wait. A participant whose renewals fail
// is healthy for as long as its lease is certain. It is in trouble when it has had no living session
// for longer than the grace: then it neither leads nor is queued, because etcd cannot be reached, etcd
// refuses, or the process hangs. The answer has the reason. A restart costs nothing then; but while
// etcd cannot be reached it does not help, either.
//
// # Connections
//
// At most 32 connections are open at a time, and a new one is always accepted: another one is closed
// for it. So a liveness probe is answered even when clients hold many connections.
//
// Not guaranteed: that a request is answered while clients open thousands of connections a second.
//
// # Addresses
//
// A port alone is on the loopback address, because the status is not public. With 0.0.0.0:9301 it can
// be reached from outside. There is no TLS and no password.
package httpstatus
