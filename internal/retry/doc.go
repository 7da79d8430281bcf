// Package retry provides the pauses between attempts: their length, and a sleep that ends with the
// context. It does not decide which errors are retried (internal/rpcerr classifies errors, and its
// users decide).
//
// The back-off grows from attempt to attempt and has jitter, because the clients of one etcd fail
// together: without jitter they would retry together, and overload the server again.
package retry
