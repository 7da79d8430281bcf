// Package bench measures what an election on etcd costs: hand-over, failover, the
// notification of observers, queues and memory, ours beside others', in one run.
// The command "eldest bench" runs it, and so do the Go benchmarks of this package.
//
// # Method
//
// A scenario measures every contender (package contender) in turns: A B C, A B C, so
// that a machine that becomes slower does so for all of them. Each turn has an election and
// sessions of its own, on clients that live as long as the run; the first turns
// are thrown away. Before each turn the clients move on to another member at random. Times are
// taken where a user would take them. The times of one contender depend on the machine; the
// ratio of two from the same run depends on it much less.
//
// Whether a candidate is queued is seen by a watch of the bench's own (monitor), on a client of its
// own, the same for all contenders.
//
// # Hosts
//
// A host is where candidates and observers are: a client of this process, or a worker,
// which is another process that runs Work. Only a worker can be killed. The
// requests and watch events of a host are counted (wire), and its network can be cut.
//
// # Ends
//
// A run whose cluster does not answer, whose worker has died, or in which all turns fail
// round after round, ends with an error and with what it has measured. Its keys are all
// on leases, of five minutes at most: they remain for that long if a run is killed.
//
// # Figures
//
// Samples are kept one by one, in the order of the rounds. Percentiles are the
// nearest ranks: p99 of 100 samples is the 99th smallest. Where a turn failed, all results
// of its point count an error and have no sample: the percentiles of a result with errors
// are too good, which is why the errors are shown beside them. Scenario.Regimes and Metrics explain
// the words in the results; Report.Notes say what could not be measured.
//
// # Not guaranteed
//
// That times of different processes are read from one clock: they are wall-clock times
// of one machine. A step of that clock in the middle of a round falsifies the round.
package bench
