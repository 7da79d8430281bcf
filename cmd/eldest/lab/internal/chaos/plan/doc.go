// Package plan says what a round of chaos consists of: which faults, on whom, for how
// long. It is a pure function of a seed and a round's number, so that a round can be
// asked for again, and on its own.
//
// # Rounds
//
// A round has one fault or two of different groups, or a delay and something else that is
// done to the same network. Those are struck in the order of
// their groups, each when the one before has shown its effect: the network of a
// participant first, for what is cut, delayed or lost must be seen by traffic, which
// later faults may end; then what is done to etcd by hand, which takes a majority; then
// the members; then the participant's process.
//
// # Roles
//
// A strike names a role (the leader, a waiter) and not a process: who that is depends on
// the run. The same seed makes the same rounds, but not the same interleaving.
//
// # Not guaranteed
//
// That each fault comes in a few rounds: draws are independent. Over a thousand rounds
// each comes forty times or more, and those of participants twice as often.
package plan
