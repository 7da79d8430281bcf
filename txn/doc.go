// Package txn is every compare-and-commit of the protocol: entering the queue,
// proclaiming, leaving, and the guard behind which a leader uses etcd. Each is one
// transaction, because only what is compared and done at one revision is true.
//
// Not guaranteed: that an error means "not done". Where a reply was lost the
// error wraps eldest.ErrOutcomeUnknown, and every transaction here may be sent
// again: its compare makes the second one harmless.
//
// # Entering
//
//	If   create(own) = 0
//	Then Put(own, value, lease), Range(queue, newest first, keys only)
//	Else Get(own)
//
// A range inside a transaction sees the transaction's own put, so one round trip
// yields the own revision, the nearest older candidates and the length of the
// queue. The Else branch is how a lost reply is repaired: the key is there and is
// adopted. That is ByCreateRevision; ByPointer reads less where the queue is long.
//
// # Proclaiming and leaving
//
//	If create(own) = token Then Put(own, value, lease)
//	If create(own) = token Then Delete(own)
//
// The create revision names one life of the key. A compare of the value or of
// mere existence would let a candidate of an earlier tenure act in a later one.
//
// # The guard
//
//	If create(leader's key) = token Then Txn(the caller's own) Else Get(leader's key)
//
// The caller's transaction is nested, not merged: its own compares keep their
// meaning, and the answer tells lost leadership (GuardError, from the outer
// compare) from the caller's own compare failing (Succeeded false) from an
// unknown outcome (G4). This is where split brain ends: whatever a deposed leader
// still sends, the compare is false, and nothing is applied.
//
// # Arguments
//
// Names, leases and values are taken for checked, as package election does, and a nil
// client panics; only the guard, which is in users' hands, checks.
//
// A room of functions: nothing here waits, watches, retries or keeps time.
package txn
