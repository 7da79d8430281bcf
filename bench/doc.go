// Package bench measures what an election on etcd costs: hand-over, failover, the
// fan-out of a change to observers, queues and memory, ours beside others', in one run.
// The command "eldest bench" runs it, and so do the Go benchmarks of this package.
//
// # Method
//
// A scenario measures every contender (package contender) in turns: A B C, A B C, so
// that a machine that drifts drifts for all of them. Each turn has an election of its
// own and sessions of its own, on clients that live as long as the run; the first turns
// are thrown away. A client asks the members of the cluster one after the other: before
// each turn it moves on to one at random, so that no contender always meets the leader. Times are read where a user would read them. What a table says of
// one contender alone depends on the machine; the ratio of two from the same run says
// something about the contenders.
//
// Whether a candidate stands in the queue yet is asked of etcd by a watch of the
// bench's own, the referee, on a client of its own; the same for all contenders.
//
// # Hosts
//
// A Host is where candidates and observers live: clients of this process, or a worker,
// which is another process that runs Work. Only a worker can be killed. A host's
// requests and watch events are counted on its clients (Wire), and its network can be
// cut (Host.Cut).
//
// # Ends
//
// A run whose cluster does not answer, whose worker has died, or in which nobody succeeds
// round after round, ends with an error and with what it has measured. Its keys are all
// on leases, of five minutes at most: that long they stay if a run is killed.
//
// # Figures
//
// Samples are kept one by one, in the order of the rounds. Percentiles are the
// nearest ranks: p99 of 100 samples is the 99th smallest. Where a turn failed, all results
// of its point count an error and have no sample: the percentiles of a result with errors
// flatter it, which is why the errors stand beside them. What a regime or a metric is, the
// scenario's Terms say; what could not be measured, the report's Notes.
//
// # Not guaranteed
//
// That times of different processes are read from one clock: they are wall-clock times
// of one machine. A step of that clock in the middle of a round falsifies the round.
package bench
