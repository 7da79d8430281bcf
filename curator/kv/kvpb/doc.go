// Package kvpb is the key-value service of package curator/kv, generated from kv.proto: its
// methods, its messages, and Record, which the service writes to etcd for each write.
//
// A request that fails may have been carried out. Only these errors mean that it was not:
// INVALID_ARGUMENT, FAILED_PRECONDITION, NOT_FOUND, and an UNAVAILABLE with a
// curatorpb.LostLeadership that has nothing_applied. After any other error, look for the record
// with the request's ID.
//
// The Go code is committed. After a change of kv.proto run go generate, which needs nothing but Go,
// and commit the result.
package kvpb

//go:generate ../../../tests/generate/run
