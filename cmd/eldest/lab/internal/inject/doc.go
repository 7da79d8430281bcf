// Package inject injects faults into a cluster, and shows that they took effect.
//
// A Field is a cluster of etcd members, each in its own process, clients whose network has no faults, and
// the processes of participants. Each of its faults blocks until its effect was seen: links have held data
// back, or a key no longer exists. If the effect is not seen before the context ends, the error is
// ErrNoEffect: what happened then was not shown to happen under that fault.
//
// The faults of one member's process (kill, stop, continue, restart, replace) are methods of
// etcdtest.Member, and the faults of a participant's process methods of offspring.Process: both
// return when the process has ended, serves, or is stopped.
//
// # Not guaranteed
//
// A fault may not last: a member that is restarted is still partitioned, but a key that was deleted
// may be put again.
package inject
