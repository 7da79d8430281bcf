// Package liveness renews a lease only while the application works, and not merely while its
// process runs.
//
// Not guaranteed: more than is checked. A goroutine that only beats proves that goroutines run;
// call Alive in the code that must not get stuck, or check that code.
//
// # The knob
//
// lease.Config.Liveness, without which a leader whose work hangs (a full disk, a deadlock, a database
// that does not respond) keeps its key, and no other candidate can lead.
//
//	pulse := lease.NewLiveness(5 * time.Second)
//	lease.Config{Liveness: pulse, ...}
//	go liveness.While(ctx, pulse, time.Second, db.PingContext)
//
// The loop that does the work calls pulse.Beat after each piece of it; While beats as long as a
// check succeeds, for work that is done elsewhere. If both must hold, let the loop do the check.
//
// A candidate that waits needs the probe as well: one that cannot work must not win. It has no work
// after which it could beat, so use a check.
//
// # What is lost
//
// A leader that is merely slow. The time of NewLiveness must be longer than the longest piece of
// work, including pauses of the garbage collector and of the machine, and the time to a new leader
// grows by it: at most this time + Renewal.Every + TTL from the last beat.
package liveness
