// Package core is the election protocol as a pure state machine: Step takes the state of a
// candidate and an event, and returns the next state and the effects to carry out.
//
// StepSession does the same for a session, which is the client's side of a lease.
//
// There is no goroutine, no clock, no context and no client here. Package loop feeds the
// events and carries out the effects. So the whole protocol can be read in one table
// (see Table), tested as a list of events, and searched exhaustively.
//
//   - state.go has the state of a candidate and its invariants.
//   - event.go has the events that a candidate receives: replies of etcd, changes of watched keys,
//     calls of the user, the end of the session.
//   - effect.go derives the effects from two states. The order of the effects is the same for all
//     transitions, and G3 depends on it.
//   - table.go has one rule for each phase and each event.
//   - session.go is the session: the deadline, renewals, and their confirmation.
//
// Guarantees are those of package eldest, G1 to G8.
package core
