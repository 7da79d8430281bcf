// Package identity is what a node of a leader-elected service publishes about itself: the value of
// its candidate key. It handles bytes only, and does not use etcd.
//
// Not guaranteed: that an identity is true. Any client that may write into the election's range can
// write any identity. A connection to the address in it must be authenticated like any other.
// Leadership is decided by keys and their revisions, never by values.
//
// # Why there is one
//
// A client that only needs the key of the leader needs no value. A follower that forwards requests
// needs the leader's address; an operator needs its name; and a node that restarts after a crash
// needs to recognise the key in the queue that is its own, of an earlier life. All of it is in the
// key's value, which is written with the key in one transaction, so it can never be that of another
// tenure.
//
// # The bytes
//
// The codec Protobuf writes one message, each field as a tag, a length or number, and
// the content. Empty fields are left out. For node "n1" with a TTL of 10 s:
//
//	0a 02 6e 31    field 1, node ID: 2 bytes, "n1"
//	10 0a          field 2, TTL: 10 seconds
//
// and, if the node sets more, for address "h:1", instance "ab" and priority -2:
//
//	1a 03 68 3a 31 field 3, address: 3 bytes, "h:1"
//	22 02 61 62    field 4, instance: 2 bytes, "ab"
//	28 03          field 5, priority: -2, as (zig-zag) 3
//
// Other programs write and read fields 1 and 2 without the other fields. Their values decode here,
// with an empty address, to which nothing can be forwarded; and they can read ours, because in this
// format unknown fields are skipped.
//
// # Values of others
//
// A value that is no such message, or has no node ID, is foreign: Decode wraps
// eldest.ErrForeignValue. Then a candidate leads whose identity is unknown. That is no reason to
// leave the queue, or to repeat requests: the key decides, and it will change.
//
// The format has no mark that identifies it, so a foreign value can look like one of ours: if it
// starts with field 1 as a text, that is taken for a node's name. Programs that put something else
// into the values of one election need elections of their own, or a Codec that all of them share.
package identity
