// Package scenario runs a scripted plan on its own etcd cluster, with participants that are
// processes.
//
//   - History has what the participants of a plan (demo, service, chaos) report, and the actions on
//     them. The cluster with its faults, and the participants' processes, are those of package inject.
//   - Demo is the environment of a plan that is reported while it is carried out: Step by Step,
//     each Fact as a line of text or as a JSON object, with a summary of what was checked. Run
//     does all of it, from the start of the cluster to the summary.
//
// # Times
//
// The times of a demo are readings of one machine's wall clock, taken where the event happened: a
// participant puts the time into its report. Lines appear in the order of their times.
//
// # What is left
//
// Nothing is left: Run ends all processes and removes all data before it returns, however it ends.
// On Linux, the participants and members are killed even when this process is killed; on other
// systems the participants lose their etcd. The data is removed in either case.
//
// # Not guaranteed
//
// A report that arrives later than SettleTime may appear out of order, an effect before its cause.
// A run without a violation proves nothing.
package scenario
