// Package service is a plan (package scenario) that shows a leader-elected service under
// faults: its steps, its words, the client that calls the service, and the audit of it all.
//
// # Participants
//
// The cluster has three members. Each of the three nodes is a process of its own, "eldest
// service node --json", so that it can crash, and reaches etcd through one member only, so that
// a member's partition is its node's as well. The nodes serve a key-value service (package
// curator/kv). A client calls nodes at random, several at a time, each call once, whatever
// happens; it keeps what it asked for and what it was told.
//
// # What is judged
//
// At the end everything that ever happened in etcd is read from etcd itself: it keeps its
// history, and nobody here compacts it. Audit compares that with what the demo did, what nodes
// reported and what the client was told, by the rules of package oracle where the protocol is
// concerned. It does not know the script, and its tests have histories that are wrong.
//
// The service leaves a record with each write, which says whose call it was and in which tenure.
// That a write was made by the leader of that time is not taken from the record alone: the
// election's own keys show who led at each revision.
//
// A fault that took no effect, or during which nobody called, makes the run INVALID, which fails
// like a violation.
//
// # Not guaranteed
//
// That a run repeats another one. The seed repeats what the client asks for, not when the machine does
// what. And a run in which nothing was violated is no proof.
package service
