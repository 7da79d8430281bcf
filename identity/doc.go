// Package identity is what a node of a leader-elected service tells of itself: the
// value of its candidate key. It is bytes and nothing else; it knows no etcd.
//
// Not guaranteed: that an identity is true. Whoever may write into the election's range
// can write any. A connection to the address it names must be authenticated like any
// other, and who leads is decided by keys and their revisions, never by values.
//
// # Why there is one
//
// Whoever only wants to know which key leads needs no value. A follower that forwards
// requests needs the leader's address; an operator needs its name; and a node that
// comes back after a crash needs to know that the key in the queue is its own, of an
// earlier life. All of it is in the key's value, written with the key in one
// transaction, so it can never be that of another tenure.
//
// # The bytes
//
// The codec Protobuf writes one message, each field as a tag, a length or number, and
// the content. Empty fields are left out. For node "n1" with a TTL of 10 s:
//
//	0a 02 6e 31    field 1, node ID: 2 bytes, "n1"
//	10 0a          field 2, TTL: 10 seconds
//
// and, where the node says more, for address "h:1", instance "ab" and priority -2:
//
//	1a 03 68 3a 31 field 3, address: 3 bytes, "h:1"
//	22 02 61 62    field 4, instance: 2 bytes, "ab"
//	28 03          field 5, priority: -2, as (zig-zag) 3
//
// Fields 1 and 2 are what other programs write and read who know no others. Their
// values decode here, with an empty address, to which nothing can be forwarded; and they
// can read ours, because the format has unknown fields skipped.
//
// # Values of others
//
// A value that is no such message, or names no node, is foreign: Decode wraps
// eldest.ErrForeignValue. Somebody leads then, and nobody knows who. That is no reason
// to leave the queue, nor to ask again and again: the key decides, and it will change.
//
// The format has no mark by which it knows itself, so a foreign value can look like one
// of ours: whatever starts with field 1 as a text is a node's name. Programs that put
// something else into the values of one election need elections of their own, or a
// Codec that all of them share.
package identity
