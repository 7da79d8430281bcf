// Package layers holds the plan of the house, which room may import which and
// why, in a form that a test reads. It is imported by nothing but its own test.
//
// Facts flow up: etcd, then internal/watch, then election and observe, then
// elector and curator. Commands flow down. A room that reaches sideways or up
// makes that order a wish, so the test reads the imports of every Go file of all
// modules, tests excluded, and fails with the reason that stands beside the
// rule. The reason is the map's value: whoever breaks a rule reads why it is
// there, and whoever wants to change it knows what to argue with.
//
// What is not in a rule is forbidden where it is ours (a room lists the rooms it
// may use) and where it is foreign to the root module, which is to stay light
// (Light lists what it may use). The standard library is allowed unless a room
// rules a package out.
//
// Beside imports the test checks the shape of the house: a doc.go in each
// package, no file over MaxLines, none named after being shared instead of after
// what it owns, no goroutine in a room that must not have one. Generated files are
// as long as they are, and may use package unsafe; their packages follow the rules.
//
// A new package needs a rule before it passes: add it to Rooms in rules.go.
package layers
