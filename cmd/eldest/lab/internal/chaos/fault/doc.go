// Package fault strikes the faults that package plan draws, on a real cluster and real
// processes, and heals them. It chooses whom a fault is done to, notes it in the history,
// and knows how it is healed; how it is done, and shown to take effect, is mostly package
// inject's and etcdtest's.
//
// # Proof
//
// Each fault shows that it took effect: a process stands still or is gone, a proxy has
// swallowed something, a member's links have held something back, a read of the past is
// refused, a clock has run at the rate that it was told. Strike blocks until it has seen
// that, and files Struck; a fault that cannot show it is an error, and the round proves
// nothing.
//
// # Healing
//
// An Injury knows how to undo its fault. Healing it is repeatable until it has succeeded.
// What was stopped is continued, whatever else fails.
//
// # Not guaranteed
//
// That a fault hits whom the plan meant: a leader may cease to lead between the question
// who leads and the strike. The fault hits all the same, and the history says whom.
package fault
