// Package sim tests elections under faults in virtual time, with the real etcd server and the real
// client (package rig), and checks the histories with package oracle.
//
// It proves nothing about more than one etcd member, because members communicate over real sockets,
// which a bubble does not allow. It does not repeat an interleaving: a seed determines the
// scenario, but not how goroutines are scheduled. A failure that does not come again at once comes
// within a few runs (-count=50). A stopped process is simulated (life.go): its network and its
// clock stop, but its timers cannot be stopped.
//
// # A scenario
//
// A plan (plan.go) is drawn from a seed: participants, each with its distance from the server, its
// clock and the settings of its session; a TTL; and a list of steps at virtual instants. The kinds
// of steps are in faults.go: partitions, delays, lost packets and replies, crashes, stops at any
// request, starvation; revocations, deletions, overwrites; a server that is compacted, full,
// restarted, down or unreachable; and voluntary departures. Running a scenario (run.go) takes some
// 60 ms for about half a minute. Each participant (participant.go) campaigns, makes guarded writes
// while it leads and once more after that, and starts again.
//
// In one scenario in four (transfers.go) most participants take part in transfers of leadership: an
// administrator requests some at random instants, with random timeouts; in some of these scenarios
// participants yield to one another by priority. In one in two (heartbeats.go) some have
// heartbeats. In one in three there is an observer, with faults in its own network.
//
// At the end all faults are healed, time passes, and the history is judged. A fault counts if its
// effect was measured, not when it was ordered (kind.go). A scenario without any tenure, write or
// read is INVALID, which is a failure; so is a suite of 200 or more scenarios in which one kind of
// fault never took effect.
//
// # Contenders
//
// The election under test is a contender of bench/contender. It is ours (contender.go), the
// drop-in, or ours as package elector runs it (node.go), in processes that are restarted: in these
// no scenario may find a violation. Or it is etcd's own package: there the scenarios must find the
// known faults, because a harness that does not find them proves nothing.
//
// # Running
//
// By default 100 new seeds run, in as many processes as there are processors.
//
//	go test ./cmd/eldest/lab/sim -sim.seed=17                        one seed
//	go test ./cmd/eldest/lab/sim -run '^TestScenarios$' -sim.seeds=10000 -timeout 0
//	ELDEST_SIM_SEEDS=500 go test work                       in a run over all packages
//	ELDEST_ALL=1 go test ./cmd/eldest/lab/sim                        all seeds of the drop-in and of nodes, not a third
//	go test ./cmd/eldest/lab/sim -run '^TestScenarios$' -timeout 0 -v -sim.record=/var/tmp/record
//
// The last is the reference run: seeds of all styles, until there are a million tenures and a
// virtual year. The same command continues a run that was stopped; summary.json in its directory
// shows the progress. With -sim.impl=drop-in or elector it runs that election; with
// -sim.impl=concurrency it runs etcd's own package, and violations are counted.
//
// A failure prints its seed, the plan, and all events, in virtual time.
package sim
