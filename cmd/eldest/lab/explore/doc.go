// Package explore runs package core in every order of events, against a model of etcd.
//
// There are a few candidates, each with a key of its own, and everything that etcd, the
// network and the users can do: requests arrive at any time or never, replies are lost,
// watches are late by any time, keys are deleted by hand, sessions end, leases expire. The
// state of the candidates is the real one: explore calls core.Step and nothing else.
//
//   - world.go is etcd, the network and the candidates, as one value that can be copied, and
//     what must hold of it.
//   - moves.go lists what can happen next.
//   - lease.go is the same for one session: two clocks, one server, and what is between them.
//   - search.go visits all states that can be reached, or a random part of them.
//
// # Not guaranteed
//
// Candidates and sessions are searched apart: that a session ends before its lease expires is
// assumed where candidates are searched, and shown where sessions are.
package explore
