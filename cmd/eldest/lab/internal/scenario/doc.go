// Package scenario carries a scripted plan out on an etcd cluster of its own, with participants
// that are processes.
//
//   - Env is the environment of every plan (demo, service, chaos, load): the cluster with its
//     faults (package inject), the participants' processes, and the history of what they
//     report and of what is done to them.
//   - Demo is the environment of a plan that is told while it is carried out: Step by Step,
//     each Fact as a line for people or as a JSON object for programs, with a summary of what
//     was checked. Run does all of it, from the start of the cluster to the summary.
//
// # Times
//
// The times of a demo are of one machine's wall clock, taken where the thing happened: a
// participant puts the time into its report. Lines appear in the order of their times.
//
// # What is left
//
// Nothing: Run ends all processes and removes all data before it returns, however it ends.
// On Linux, the participants and members are killed with this process even if that is killed
// itself; elsewhere the participants lose their etcd. The data is removed in either case.
//
// # Not guaranteed
//
// That causes are told before effects that are reported later than SettleTime, and that a run
// in which nothing was violated proves anything.
package scenario
