// Package scenario runs a scripted plan on an etcd cluster of its own, with participants
// that are processes, tells what happens while it happens, and has it judged at the end.
//
// A plan (Plan) says what is done, in which words a fact is told, and what is checked. The
// package has what all plans need:
//
//   - Env is the environment: the cluster with its clients and its faults (package inject),
//     the participants, and the facts of all that happens, in the order of their times.
//     Participants report facts as JSON lines on their stdout; the plan tells its own.
//   - Env.Step runs a step of the plan under a numbered heading.
//   - Run is all of it, from the start of the cluster to the summary.
//
// Facts are told to people, as text, or to programs, as a JSON object a line.
//
// # Times
//
// All times are of one machine's clock, taken where the thing happened: a participant puts
// the time into its report.
//
// # What is left
//
// Nothing: Run ends all processes and removes all data before it returns, however it ends.
// Where the kernel can be asked to (Linux), the participants and members are killed with
// this process even if that is killed itself; elsewhere the participants lose their etcd.
// The data is removed in either case.
//
// # Not guaranteed
//
// That a run in which nothing was violated proves anything.
package scenario
