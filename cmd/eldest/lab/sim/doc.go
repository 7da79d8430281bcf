// Package sim tries elections under faults in virtual time, against the real
// etcd server and the real client (package rig), and has what happened judged by
// checkers (package oracle).
//
// It proves nothing about more than one etcd member (members talk over real
// sockets, which a bubble does not allow), and it does not repeat an interleaving:
// a seed determines the scenario, and the goroutines run as they please. A failure
// that does not come again at once comes within a few runs (-count=50). A process
// that is stopped is imitated (life.go): its network and its clock stand still, its
// timers cannot.
//
// # A scenario
//
// A plan (plan.go) is drawn from a seed: participants, each with its
// distance from the server, its clock and its session's temper; a TTL; and a list
// of steps at virtual instants. What a step can do is in faults.go: cuts, delays, lost
// packets and replies, crashes, stops at any request, starvation; revocations,
// deletions, overwrites; a server that is compacted, full, restarted, down or out of
// reach; and departures of one's own will. Playing it (run.go) takes some
// 60 ms for about half a minute. Each participant (participant.go) campaigns, makes
// guarded writes for as long as it leads and once more after that, and starts again.
//
// In one scenario in four (transfers.go) most participants take part in transfers of
// leadership, somebody asks for some at random instants, and gives up at others; in some
// of these participants yield to one another by priority. In one in two (heartbeats.go) some
// have heartbeats. In one in three there is an observer, with a bad network of its own.
//
// At the end everything heals, time passes, and the history is judged. A fault counts
// when its effect was measured, not when it was ordered (kind.go). A scenario in which
// nobody led, wrote or read is INVALID, which is a failure; so is a suite of 200 or
// more in which one kind of fault never took effect.
//
// # Contenders
//
// What is tried is a contender of bench/contender: ours (contender.go) and the drop-in, or ours
// as package elector runs it (node.go), in processes that are restarted, of
// which no scenario may find anything; or etcd's own package, of which the scenarios must
// find the known faults, because a harness that does not find them
// proves nothing.
//
// # Running
//
// By default 200 seeds run, in as many processes as there are processors.
//
//	go test ./cmd/eldest/lab/sim -sim.seed=17                        one seed
//	go test ./cmd/eldest/lab/sim -run '^TestScenarios$' -sim.seeds=10000 -timeout 0
//	ELDEST_SIM_SEEDS=500 go test work                       in a run over all packages
//	go test ./cmd/eldest/lab/sim -run '^TestScenarios$' -timeout 0 -v -sim.record=/var/tmp/record
//
// The last is the reference run: seeds of all styles, until there are a million tenures
// and a virtual year. Stopped, it goes on where it was when the command is given again;
// summary.json in its directory says how far it is. With -sim.impl=drop-in or elector it is
// those that run; with -sim.impl=concurrency, etcd's own package, and what is found is
// counted.
//
// A failure prints its seed, the plan, and all that happened, in virtual time.
package sim
