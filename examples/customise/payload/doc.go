// Package payload stores a node's value in etcd as JSON, for people with etcdctl and for programs
// in other languages.
//
// Not guaranteed: that all nodes can read it. Every node of an election must be able to decode the
// values of every other node; a node that cannot decode the leader's value waits without the
// leader's identity.
//
// # The knob
//
// elector.Config.Codec, an identity.Codec: how a node's identity becomes the value of its key, and
// back. (Package election takes any bytes, and no codec.)
//
//	node, err := elector.New(elector.Config{Codec: payload.JSON{Zone: "eu-1"}, ...})
//
// JSON also shows how to publish more than identity.Identity has: the codec writes the zone, and
// programs that need it call Extra with Leader.Value.
//
// # Moving a fleet
//
// Values change one node at a time. Moving writes one codec and reads two: first all nodes get
// Moving{Write: old, Read: new}, then Moving{Write: new, Read: old}, then the new codec alone. In
// every step all nodes can read each other's values.
//
// # What is lost
//
// Programs that decode identity.Protobuf only: "eldest leader" and "eldest list" show bytes, and a
// resolver needs the same codec. JSON is two to four times as long.
package payload
