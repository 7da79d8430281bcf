// Package claims keeps what a session knows of the keys that are bound to its lease:
// which candidate holds which key, and which lives of a key are to be removed.
//
// A lease and an election give one key. So two candidates that share a session must not
// have the same key, and a candidate must know what became of the life that the candidate
// before it left. Both are decided here, under one mutex; the requests are sent by
// package election.
//
// # Rules
//
//   - A name is a key as one client sees it (Name): through a namespace one name is
//     another key of etcd. A life of a key is named by its token, which no two keys of one
//     etcd share, so a token has one holder, whichever name it was reached by.
//   - A token is doomed before the request that deletes it is sent (Claim.Doom). A doomed
//     token is never held again (Claim.Hold), so a late delete cannot end a tenure. It is
//     forgotten when etcd has confirmed that it is gone, and no candidate waits for an
//     older answer.
//   - What is doomed, what may yet arrive, and whether the lease is being revoked is
//     remembered for the lease and not for the session (Lease): a session that is abandoned
//     leaves requests on their way, and lease.Resume can make another session of its lease.
//   - A claim that is given up with a clean-up (Claim.Clean) is cleaned up after until the
//     session ends or the name is claimed again.
//
// Locks are taken in this order: that of a Claims, that of all leases, that of a Lease.
package claims
