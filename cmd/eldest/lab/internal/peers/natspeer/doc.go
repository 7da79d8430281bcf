// Package natspeer elects with a key in a key-value bucket of NATS JetStream, which three servers replicate: the
// candidate that creates the key leads, and updates it before it expires. The others watch the key.
//
// # Not guaranteed
//
// That one leads at most: a leader is told that it has lost when an update fails, and no earlier. That others do
// the same: NATS has no election of its own, and programs that use buckets so differ.
package natspeer
