// Package explore runs package core in every order of events, against a model of etcd.
//
// There are a few candidates, each with a key of its own, and everything that etcd, the
// network and the users can do: requests arrive at any time or never, replies are lost,
// watches are late by any time, keys are deleted by hand, sessions end, leases expire. The
// state of the candidates is the real one: explore calls core.Step and nothing else.
//
//   - world.go is etcd, the network and the candidates, as one value that can be copied.
//   - moves.go lists what can happen next.
//   - judge.go has what must hold after each move, and where nothing moves any more.
//   - search.go visits all worlds that can be reached, or a random part of them.
//
// Not guaranteed: time. That a session ends before its lease expires is assumed here; it is
// shown by docs/model and tested by lab/sim.
package explore
