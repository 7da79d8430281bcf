// Package keeper makes a crash known at once: a second process, the keeper, waits for the death
// of this one and revokes its leases, so that the next candidate leads after milliseconds
// and not when a lease expires.
//
// # How it works
//
// The keeper is the same executable once more, in a session of its own. It holds a pidfd of this
// process and a client of etcd whose connection is open. Sessions tell it of their leases
// (lease.Config.Keeper). The pidfd says that the process is dead only when no thread of it
// runs any more; then the keeper revokes the leases, and with them the keys of all candidates,
// those that wait included. So nothing is revoked of a process that can still act (G1): one that
// is stopped, that hangs or is cut off keeps its lease, and loses it as ever.
//
// # What it cannot do
//
// What takes both processes along (the machine, the container, a kill of the whole control group)
// leaves the leases to expire. Bytes that the dead process had handed to the kernel may still reach
// other services; a guard or a fence refuses them, as it does without a keeper. The kernel takes its
// time to end a large process: it frees its memory first.
//
// Children of the process are not waited for: who starts programs that must not outlive it uses
// "eldest run", whose keeper kills them before.
//
// # What it costs
//
// A process of the size of the program's start, a connection, and one question to etcd every
// 30 s. Nothing of it is on the way of a request of the program's.
//
// It needs Linux 5.3; elsewhere Start returns an error that wraps errors.ErrUnsupported.
package keeper
