// Package sim tries elections under faults in virtual time, against the real
// etcd server and the real client (package rig), and judges what happened by
// checkers (package history).
//
// It proves nothing about more than one etcd member (members talk over real
// sockets, which a bubble does not allow), nothing about suspended machines and
// stopped processes, and it does not repeat an interleaving: a seed determines
// the scenario, and the goroutines run as they please. A failure that does not
// come again at once comes within a few runs (-count=50).
//
// # A scenario
//
// A plan (plan.go) is drawn from a seed: two to six participants, each with its
// distance from the server, its clock and its session's temper; a TTL; and a
// list of steps at virtual instants: cuts, delays, lost replies, crashes,
// revocations, deletions, overwrites, compactions, restarts, and departures of
// one's own will. Playing it (play.go, step.go) takes some 50 ms for about 70
// virtual seconds. Each participant (actor.go) campaigns, makes guarded writes
// for as long as it leads and once more after that, and starts again.
//
// At the end everything heals, time passes, and the history is judged. A run in
// which nobody led, nobody wrote, or no fault took effect is INVALID, which is a
// failure; so is a suite of 100 or more in which one kind of fault never struck.
//
// # Implementations
//
// Whatever can be put behind [Contender] can be tried. [Eldest] is ours, and no
// scenario may find anything. [Concurrency] is etcd's own package, and the
// scenarios must find its known faults (concurrency_test.go), because a harness
// that does not find them proves nothing.
//
// # Running
//
// By default 2,000 seeds run, or 100 under the race detector and with -short.
//
//	go test ./tests/sim -sim.seed=17          one seed
//	go test ./tests/sim -sim.seeds=10000      more of them
//	ELDEST_SIM_SEEDS=100 go test work         in a run over all packages
//
// A failure prints its seed, the plan, and all that happened, in virtual time.
package sim
