// Package bench measures what an election on etcd costs: hand-over, failover, the notification of
// observers, queues and memory, for Eldest and for other contenders in one run; and what a call of a
// leader-elected service costs. The command "eldest bench" runs it, and so do the Go benchmarks of
// this package.
//
// # Method
//
// A scenario measures every contender (package contender) in turns: A B C, A B C, so that a machine
// that becomes slower does so for all of them. Each turn has an election and sessions of its own,
// on clients that live as long as the run; the samples of the first turns are discarded. Before
// each turn each client moves to another member at random. Times are taken where a user would take
// them. The times of one contender depend on the machine; the ratio of two from the same run
// depends on it much less.
//
// A watch of the benchmark itself (monitor) shows whether a candidate is queued. It uses a client
// of its own and is the same for all contenders.
//
// The contenders of the scenario forwarding are three ways to a service (package echo), which runs in
// this process for as long as the run. The handler counts the calls of each way.
//
// # Hosts
//
// A host runs candidates and observers: it is a client of this process, or a worker, which is
// another process that runs Work. Only a worker can be killed. The requests and watch events of a
// host are counted (wire), and its network can be interrupted.
//
// # Ends
//
// A run ends early, with an error and with the results so far, when the cluster does not answer,
// when a worker has died, or when all turns fail in consecutive rounds. All its keys are on leases
// of at most five minutes: if a run is killed they remain for that long.
//
// # Figures
//
// Samples are kept one by one, in the order of the rounds. Percentiles are the nearest ranks: p99
// of 100 samples is the 99th smallest. If a turn fails, every result of its point counts an error
// and has no sample. The percentiles of a result with errors are therefore too good, so the errors
// are shown beside them. Scenario.Regimes and Metrics explain the words in the results;
// Report.Notes lists what could not be measured.
//
// # Not guaranteed
//
// That times of different processes are read from one clock: they are wall-clock times of one
// machine. If that clock is set in the middle of a round, the round is wrong.
package bench
