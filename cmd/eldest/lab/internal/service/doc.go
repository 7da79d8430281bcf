// Package service is a plan (package scenario) that shows a leader-elected service under faults:
// its steps, its texts, the client that calls the service, and the audit of all of it.
//
// # Participants
//
// The cluster has three members. Each of the three nodes is a process, "eldest service node
// --json", so that it can crash. It reaches etcd through one member only, so that a partition of
// the member is also one of its node. The nodes serve a key-value service (package curator/kv). A
// client calls nodes at random, several at a time, and makes each call once, without retries; it
// records its requests and the responses that it received.
//
// # What is judged
//
// At the end all changes that ever happened in etcd are read from etcd itself: it keeps its
// history, because the demo does not compact it. Audit compares them with what the demo did, what
// nodes reported and what the client received, by the rules of package oracle for the protocol. The
// audit does not depend on the steps, and its tests have histories with violations.
//
// The service writes a record with each write, which names the request and the tenure. The record
// alone does not prove that the leader of that time made the write: the election's own keys show
// which candidate led at each revision.
//
// A fault that took no effect, or during which the client made no calls, makes the run INVALID,
// which fails like a violation.
//
// # Not guaranteed
//
// A run may not repeat another one. The seed repeats the client's requests, not the timing of the
// machine. A run without a violation is no proof.
package service
