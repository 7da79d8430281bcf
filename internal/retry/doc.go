// Package retry holds the pause between two attempts: how long it is, and that
// it ends with the context. What is worth another attempt is not decided here
// (internal/rpcerr reads errors, the rooms decide).
//
// Back-off grows from attempt to attempt and carries jitter, because the clients
// of one etcd fail together: without jitter they come back together, and the
// server that was overloaded is overloaded again.
package retry
