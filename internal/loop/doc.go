// Package loop runs the state machines of package core: it gives them what etcd, the clock
// and the users do, and carries out what they ask for.
//
// There is one Session for each session of package lease, with one mutex. An event is taken
// in by the goroutine that learns of it: it locks the mutex, steps the machine, and starts what is to be
// done, which never blocks. So the steps of a session are one after the other, and a candidate
// that only waits needs no goroutine, where its client is a plain one.
//
//   - session.go has the candidates of a session, by their keys.
//   - candidate.go runs the machine of one key: its requests, pauses and watches.
//   - request.go is how requests are sent, and how their outcome becomes an event.
//   - watch.go is how keys are watched.
//   - tasks.go has the goroutines that there are, and waits for them.
//   - twins.go has the rules of keys that other sessions of the lease may have as well.
//
// Packages election and compat/concurrency are the public faces of the candidates.
package loop
