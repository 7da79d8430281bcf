// Package badinput tries invalid input of all kinds, on real etcd, and compares the results with
// what the packages document. It contains only tests.
//
// The tests check for each input
//
//   - that the error is the documented one, by errors.Is and errors.As, and that its text
//     contains the operation, the election and the key, where there are such;
//   - that no request was sent, counted on the wire, where the caller made the error; and
//     otherwise how many requests were sent;
//   - that nothing was changed: etcd's revision is the same, unless the row sets changes;
//   - that nothing is lost: the session lives, the tenure continues, the object can be used.
//
// The inputs and their results are written to a table, docs/bad-input.md, which these tests
// generate:
//
//	go test ./tests/badinput -update
//
// Without -update they fail if the table differs from the results.
//
// Not tried here: what the compiler refuses; the zero values of types that are made by functions (a
// Candidate, a Session), which are documented as unusable; and faults of the network, which are not
// input.
package badinput
