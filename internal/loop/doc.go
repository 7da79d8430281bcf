// Package loop runs the state machines of package core: it gives them what etcd, the clock
// and the users do, and carries out what they ask for.
//
// There is one Session for each lease, with one mutex. An event is taken in by whoever
// learns of it: it locks the mutex, steps the machine, and starts what is to be done, which
// never blocks. So the steps of a session are one after the other, and a session that waits
// has no goroutine at all.
//
//   - session.go has the lease: its machine, its timer, its renewals.
//   - candidate.go has the candidates: their machines, requests, watches and pauses.
//   - request.go is how requests are sent, and how their outcome becomes an event.
//
// Package election is the public face of the candidates, and package lease that of the
// session.
package loop
