// Package service is a plan (package scenario) that shows a leader-elected service under
// faults: its steps, its words, the client that asks the service, and the audit of it all.
//
// Not guaranteed: that a run repeats another one. The seed repeats what the client asks
// and the order of the acts, not when the machine does what. And a run in which nothing
// was violated is no proof.
//
// # The cast
//
// The cluster has three members. Each of the three nodes is a process of its own, "eldest
// service node --json", so that it can be killed without a farewell, and reaches etcd
// through one member only, so that a member's partition is its node's as well. The nodes
// serve a key-value service (package curator/kv). A client asks nodes at random, several
// requests at a time, each sent once, whatever happens; it keeps what it asked and what it
// was told.
//
// # What is judged
//
// What the play does, what nodes report and what the client is told is kept as it comes
// in. At the end everything that ever happened in etcd is read from etcd itself: it
// keeps its history, and nobody here compacts it. Audit compares the two, by the rules of
// package oracle where the protocol is concerned. It is told neither the script nor what
// was meant to happen, and its tests feed it histories that are wrong.
//
// The service leaves a record with each write, which says whose request it was and
// whose tenure. That a write was made by who led then is not taken from the record
// alone: the election's own keys show who led at each revision.
//
// A fault that took no effect, or that nobody asked anything during, makes the run
// INVALID, which is as red as a violation.
package service
