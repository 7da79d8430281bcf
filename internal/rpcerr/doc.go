// Package rpcerr classifies etcd's errors. Every package needs two answers about a failed request,
// and the answers must be the same in all packages:
//
//   - Permanent: would the same request fail again in the same way? Then the error is returned at
//     once. All other errors are retried with back-off until the context ends; a refusal that is
//     not etcd's own (Refused) is retried for a few seconds.
//   - Definite: is it certain that the request was not carried out? Then a write failed. In all
//     other cases its outcome is unknown, the most dangerous answer in a distributed system, and
//     must be treated as unknown (G4).
//
// The two are independent: "too many requests" is definite but not permanent; a lost reply is
// neither; a refused permission is both.
//
// The client wraps server errors in rpctypes.EtcdError and leaves errors of the transport as gRPC
// statuses; this package reads both. A cancellation while the caller's own context has not ended
// comes from a client that was closed.
package rpcerr
