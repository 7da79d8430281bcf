// Package crew is the parent's side of the participants of a chaos run: it starts their
// processes, gives each a network of its own, knows where each stands, and does to them
// what faults do to processes.
//
// A participant has as many lives as it is killed, each with a name of its own ("p3",
// "p3.2"), because a history knows nobody who comes back from the dead. Its network is
// the same in all of them.
//
// # What is written down
//
// The harness's events about a process: Stopped after the kernel has said that it stands
// still, Continued before it is told to go on, so that the interval lies inside the real
// one; Crashed after the process was waited for.
//
// # Not guaranteed
//
// That a participant stands where Standing says: it was there when it last said so.
package crew
