// Package explore runs package core in every order of events, against a model of etcd.
//
// There are a few candidates, each with its own key, and everything that etcd, the network and the
// users can do: requests arrive at any time or never, replies are lost, watch events are late by
// any time, keys are deleted by hand, sessions end, leases expire. The state of the candidates is
// the real one: explore calls core.Step and nothing else.
//
//   - world.go has etcd, the network and the candidates, as one value that can be copied, and its
//     invariants.
//   - moves.go lists what can happen next.
//   - lease.go is the same for one session: two clocks, one server, and the requests between them.
//   - search.go visits all states that can be reached, or a random part of them.
//
// # Not guaranteed
//
// Candidates and sessions are searched separately: the search of candidates assumes that a session
// ends before its lease expires, and the search of sessions shows it.
package explore
