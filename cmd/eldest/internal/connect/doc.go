// Package connect is how commands reach etcd: the flags and what the environment says of
// them, the client, and what to tell a person when etcd does not answer.
package connect
