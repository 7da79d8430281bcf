// Package outage is a service with two manners for the loss of etcd: it stops at the deadline, or
// it continues to serve reads.
//
// Not guaranteed: that a value that is read after the deadline is still current. Another node may
// lead by then, and have written; the reading has its age, which has no limit.
//
// # The knob
//
// The behaviour of a program when its leading context ends, which is its own code: the library ends
// the context before the lease can expire, and refuses writes.
//
//	store := outage.New("orders/limit", outage.ReadOnly)
//	err := node.Run(ctx, store.Lead) // of package elector
//	reading, err := store.Read()     // Fresh, or how long ago it certainly was
//
// Stop is for values that must not be wrong, such as balances or leases of the program's own.
// ReadOnly is for values that may be old, such as limits, prices or routes. The leader answers from
// memory, without a request to etcd, and the reading shows that.
//
// # What stays guaranteed
//
// With both: a write is carried out inside a tenure or not at all (G4), and is refused at once
// after it. A reading with Fresh was the newest value at a moment during the call: memory is read
// first, and then Holds confirms that no other node can have led by then (G3). A write whose
// outcome is unknown ends the tenure, because memory and etcd may differ: the next tenure reads
// etcd again.
//
// # What is lost
//
// With Stop: reads while no node leads. With ReadOnly: a single current value. Two nodes may answer
// differently, and a client that reads from both may receive an older value after a newer one. G3
// is for leases that expire: after the leader's key was deleted by hand, a reading may be Fresh
// beside a newer leader, until the old leader is notified.
package outage
