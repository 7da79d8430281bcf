// Package txn has every compare-and-commit of the protocol: entering the queue, proclaiming,
// leaving, and the guard with which a leader uses etcd. Each is one transaction, because only what
// is compared and done at one revision is certain.
//
// # Not guaranteed
//
// An error does not always mean that nothing was done. If a reply was lost the error wraps
// eldest.ErrOutcomeUnknown. Every transaction here may be sent again: its compare makes the second
// one harmless.
//
// # Entering
//
//	If   create(own) = 0
//	Then Put(own, value, lease), Range(queue, newest first, keys only)
//	Else Get(own)
//
// A range inside a transaction includes the transaction's own put, so one round trip returns the
// create revision of its own key, the nearest older candidates and the length of the queue. The
// Else branch handles lost replies: the key exists and is adopted. That is ByCreateRevision;
// ByPointer reads less if the queue is long.
//
// # Proclaiming and leaving
//
//	If create(own) = token Then Put(own, value, lease)
//	If create(own) = token Then Delete(own)
//
// The create revision identifies one existence of the key. A compare of the value or of mere
// existence would let a candidate of an earlier tenure act in a later one.
//
// # The guard
//
//	If create(leader's key) = token Then Txn(the caller's own) Else Get(leader's key)
//
// The caller's transaction is nested, not merged: its own compares keep their meaning, and the
// result distinguishes lost leadership (GuardError, from the outer compare), a false compare of the
// caller's own (Succeeded false) and an unknown outcome (G4). This prevents a split brain: the
// compare is false for all guarded requests of a deposed leader, and nothing is applied.
//
// # Arguments
//
// Names, leases and values must be valid, as package election ensures, and a nil client panics;
// only the guard, which users call, checks its arguments.
//
// This package only has functions: nothing here waits, watches, retries or measures time.
package txn
