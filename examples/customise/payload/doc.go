// Package payload has a node's value in etcd as JSON, for people with etcdctl and for
// programs in other languages.
//
// Not guaranteed: that all of a fleet can read it. Every node of an election must read
// what every other one writes; a value that a node cannot read makes it wait without
// knowing whom it waits for.
//
// # The knob
//
// elector.Config.Codec, an identity.Codec: how a node's identity becomes the value of its
// key, and back. (Package election takes any bytes, and no codec.) In etcd's concurrency
// package a value is a string and what it means is every program's own affair.
//
//	node, err := elector.New(elector.Config{Codec: payload.JSON{Zone: "eu-1"}, ...})
//
// JSON also shows how to say more than identity.Identity has: the zone is written by the
// codec, and whoever wants it reads Leader.Value with Extra.
//
// # Moving a fleet
//
// Values change one node at a time. Moving writes one codec and reads two: first all nodes
// get Moving{Write: old, Read: new}, then Moving{Write: new, Read: old}, then the new one
// alone. No step has two kinds of nodes that cannot read each other.
//
// # What stays guaranteed
//
// G1 to G8: who leads is decided by keys and revisions, never by values. A foreign value
// costs the name of the leader, and nothing else: the node stays in the queue and does not
// ask again and again.
//
// # What is lost
//
// Programs that only know identity.Protobuf: "eldest leader" and "eldest list" show bytes,
// and a resolver needs the same codec. JSON is two to four times as long.
package payload
