// Package inject injects faults into a cluster, and shows that they took effect.
//
// A Field is a cluster of etcd's members, each a process of its own, clients whose network has no
// faults, and the processes of participants. Each of its faults blocks until its effect was seen: links
// have held something back, a key is not there any more. A fault whose effect is not seen before the
// context ends is ErrNoEffect: whatever happened then, it was not shown to happen under that fault.
//
// The faults of one member's process (kill, stop, continue, restart, replace) are those of
// etcdtest.Member, and the faults of a participant's process those of offspring.Process: both return
// when the process has ended, serves, or is stopped.
//
// # Not guaranteed
//
// That a fault lasts: a member that is restarted is cut as before, but a key that was deleted may be
// put again.
package inject
