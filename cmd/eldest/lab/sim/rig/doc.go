// Package rig runs the real etcd server and real etcd clients in virtual time.
//
// It does not give a deterministic schedule: goroutines in a bubble still run in any order, so a
// seed repeats a scenario and not the exact interleaving. It runs one member only, because members
// communicate over real sockets, and a real socket hangs a bubble.
//
// A [World] lives inside one testing/synctest bubble. Time in the bubble stops while any goroutine
// runs and jumps to the next timer when all wait, so a lease of ten seconds expires in
// microseconds, and every recorded instant is exact. The parts of a World are
//
//   - [Server]: etcdserver and its gRPC front, with the data on disk (in memory where the machine has
//     a memory file system). It can be stopped and started again with its data, can be out of space,
//     and can require tokens ([Options]). It counts its refusals;
//   - [Host]: one machine with its own network to the server and one clientv3 client. Its network can
//     be delayed, held in either direction or both, and reset. Packets can be lost, which delays the
//     following ones. The process on it can be frozen, can starve, and can be stopped by a [Trap] at
//     any of its requests, whose reply may be lost after the server has executed it;
//   - [Tap]: every change of the store, read from the server's own store and not through any client,
//     with the virtual instant of the commit.
//
// # Rules
//
// One bubble at a time: clientv3 keeps one package-level channel which must belong to the bubble
// (see clientNeverDone). [Run] takes care of it, and lets a virtual minute pass at the end, so that
// a goroutine that was left behind makes the bubble panic: a leak check that costs nothing.
//
// Nothing in a bubble may use a real socket, or wait on a channel that was
// made outside.
package rig
