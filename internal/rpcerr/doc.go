// Package rpcerr reads etcd's errors. Every room asks the same two questions of
// a failed request, and the answers must not differ from room to room:
//
//   - Permanent: would asking again give the same answer? Then the caller is told
//     at once. Anything else is retried with back-off until the context ends; a refusal
//     that is not etcd's own (Refused) for a few seconds.
//   - Definite: is it certain that the request was not carried out? Then a write
//     failed. Anything else is an unknown outcome, the most dangerous answer in a
//     distributed system, and must be treated as such (G4).
//
// The two are independent: "too many requests" is definite but not permanent; a
// lost reply is neither; a refused permission is both.
//
// The client wraps server errors in rpctypes.EtcdError and leaves errors of the
// transport as gRPC statuses; both are understood. A cancellation that the
// caller's own context does not explain comes from a client that was closed.
package rpcerr
