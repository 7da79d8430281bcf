// Package liveness has a lease renewed only while the application works, and not merely
// while its process runs.
//
// Not guaranteed: more than what is checked. A goroutine that beats by itself proves
// that goroutines run; let what must not get stuck do the beating, or check it.
//
// # The knob
//
// lease.Config.Liveness. In etcd's concurrency package the lease is renewed by a goroutine of
// the client's, for as long as the process is there. A leader whose work hangs (a
// full disk, a deadlock, a database that does not answer) keeps its key, does nothing, and
// nobody else may.
//
//	pulse := lease.NewLiveness(5 * time.Second)
//	lease.Config{Pulse: pulse, ...}
//	go liveness.While(ctx, pulse, time.Second, db.PingContext)
//
// The loop that does the work calls pulse.Beat after each piece of it; While beats as long
// as a check succeeds, for work that is done by others. Where both must hold, let the
// loop do the check.
//
// A candidate that waits needs the pulse as well: one that cannot work must not win. It
// has no work to beat for, so a check is what suits it.
//
// # What stays guaranteed
//
// G1 to G8. A silent pulse is as if the renewals had failed: the deadline stays where the last
// renewal put it, and all that happens at a deadline happens there. The cause says
// eldest.ErrUnresponsive.
//
// # What is lost
//
// A leader that is merely slow. The pulse's patience must be longer than the longest
// piece of work, pauses of the garbage collector and of the machine included, and
// the time to a new leader grows by it: at most patience + Renewal.Every + TTL from the last beat.
package liveness
