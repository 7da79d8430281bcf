// Package loop runs the state machines of package core: it gives them the events of etcd, of the
// clock and of the users, and carries out the effects that they return.
//
// There is one Session for each session of package lease, with one mutex. The goroutine that
// receives an event handles it: it locks the mutex, steps the machine, and starts the effects,
// which never blocks. So the steps of a session are serialised, and a candidate that only waits
// needs no goroutine if its client is a plain one.
//
//   - session.go has the candidates of a session, by their keys.
//   - candidate.go runs the machine of one key: its requests, pauses and watches.
//   - request.go sends requests, and turns their outcomes into events.
//   - watch.go watches keys.
//   - tasks.go starts the goroutines, and waits for them.
//   - twins.go has the rules of keys that other sessions of the lease may have as well.
//
// Packages election and compat/concurrency are the public APIs of the candidates.
package loop
