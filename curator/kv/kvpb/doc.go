// Package kvpb is the key-value service of package curator/kv, generated from
// kv.proto: its methods, its messages, and Record, which is what the service leaves in
// etcd for each write.
//
// Not guaranteed: that a request whose answer is an error was not carried out. Only
// some errors say so: INVALID_ARGUMENT, FAILED_PRECONDITION, NOT_FOUND, and an
// UNAVAILABLE with a curatorpb.LostLeadership that says nothing_applied. After any
// other the record with the request's id tells.
//
// The Go code is committed. Whoever changes kv.proto runs go generate, which needs
// nothing but Go, and commits what comes out.
package kvpb

//go:generate ../../../tests/generate/run curator/kv/kvpb
