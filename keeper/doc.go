// Package keeper detects a crash at once: a second process, the keeper, waits for the death of this
// one and revokes its leases, so that the next candidate leads after milliseconds and not when a
// lease expires.
//
// # How it works
//
// The keeper is the same executable, started again in a process session (setsid) of its own. It
// holds a pidfd of this process and an etcd client with an open connection. Sessions send their
// leases to it (lease.Config.Keeper). The pidfd reports the death of the process only when no
// thread of it runs any more. Then the keeper revokes the leases, which deletes the keys of all
// candidates, also of those that wait. So no lease is revoked of a process that can still act (G1):
// a process that is stopped, hangs or is partitioned keeps its lease, and loses it as it would
// without a keeper.
//
// # What it cannot do
//
// If both processes end together (the machine, the container, a kill of the whole control group),
// the leases expire. Bytes that the dead process had passed to the kernel may still reach other
// services; a guard or a fence refuses them, as it does without a keeper. The end of a large
// process takes time: the kernel frees its memory first.
//
// The keeper does not wait for the children of the process. If a program must not outlive the
// process that starts it, use "eldest run", whose keeper kills the program first.
//
// # What it costs
//
// A process of the size that the program has at its start, a connection, and one request to etcd
// every 30 s. It adds nothing to the requests of the program.
//
// It needs Linux 5.3; elsewhere Start returns an error that wraps errors.ErrUnsupported.
package keeper
