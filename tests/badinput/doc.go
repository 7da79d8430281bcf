// Package badinput tries everything that a caller can do wrong, on real etcd, and holds
// what comes back against what the rooms promise. It has nothing but tests.
//
// Of each thing that is tried is checked
//
//   - that the error is the one that is promised, by errors.Is and errors.As, and that its
//     text names the operation, the election and the key, where there are such;
//   - that nothing was sent, counted on the wire, where the fault is the caller's; and
//     elsewhere how much was sent;
//   - that nothing was changed: etcd's revision is what it was, unless the row says so;
//   - that nothing is lost: the session lives, the tenure goes on, the object can be used.
//
// What was tried and what came back is written down as a table, docs/bad-input.md, which is
// made by these tests:
//
//	go test ./tests/badinput -update
//
// Without -update they fail where the table no longer says what comes back.
//
// Not tried here: what the compiler refuses; the zero values of types that are made by
// functions (a Candidate, a Session), which are of no use and do not pretend to be; and
// faults of the network, which are no input.
package badinput
