// Package outage is a service in two manners of bearing the loss of etcd: it stops at the
// deadline, or it goes on reading.
//
// Not guaranteed: that what is read after the deadline is still so. Another node may
// lead by then, and have written; how old the answer may be is told, and no limit is kept.
//
// # The knob
//
// What a program does when its leading context ends, which is its own code: the library
// ends the context before the lease can expire, and refuses writes. In etcd's concurrency
// package the session's channel closes after the key has gone, so there is no moment
// at which a program could change its manner in time; and nothing refuses its writes.
//
//	store := outage.New("orders/limit", outage.ReadOnly)
//	err := node.Run(ctx, store.Lead) // of package elector
//	reading, err := store.Read()     // Fresh, or how long ago it certainly was
//
// Stop is for what must not be wrong: balances, leases of one's own. ReadOnly is for
// what may be old: limits, prices, routes. The leader answers from memory, without asking
// etcd, and says so.
//
// # What stays guaranteed
//
// In both: a write is carried out inside a tenure or not at all (G4), and is refused at
// once after it. A reading that says Fresh was the newest value at a moment during the
// call: memory is read first, and then Holds says that nobody else can have led by then
// (G3). A write whose outcome is unknown ends the tenure, because memory and etcd may differ:
// the next one reads etcd again.
//
// # What is lost
//
// With Stop: reads while nobody leads. With ReadOnly: the comfort of one truth. Two nodes may
// answer differently, and a client that asks both may see time run backwards. G3 is for
// leases that expire: after somebody removed the leader's key by hand, a reading may say Fresh
// beside a newer leader, until the news arrives.
package outage
