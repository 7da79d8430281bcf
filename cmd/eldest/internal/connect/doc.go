// Package connect is how commands reach etcd: the flags and their environment variables, the client,
// and the messages for a person when etcd does not answer.
package connect
