// Package job runs one program so that it is dead by a deadline, even if one of the processes that
// supervise it is killed or stopped.
//
// # Three processes
//
// The owner ("eldest run", which has the lease) starts a keeper: the same executable again, which
// does nothing else. The keeper starts the program, as the leader of a process group and session of
// its own, so that no terminal stops it, and hooks beside it. Each kills without the others:
//
//   - the keeper, when the latest deadline that it has received has come: an owner that is stopped
//     sends no newer ones. It also kills at once when the pipe from the owner ends, which happens
//     however the owner died. The death of the owner wakes a keeper that was stopped meanwhile.
//   - the owner, when Kill is called, without the help of the keeper. It also kills a keeper that
//     does not confirm, and on Linux one that has not noticed the program's end for 5 s.
//   - the kernel: SIGKILL is the death signal of the program, sent when its parent, the keeper, dies.
//
// # Everything below
//
// On Linux the owner makes a control group (cgroup version 2) below its own, in which the keeper
// starts the program and hooks. Both have its cgroup.kill open, and kill every process in it with one
// write, however fast it forks and as whichever user it runs. The last of the two to end removes the
// group. Ungrouped returns why there is none, or why no process can be started in it.
//
// Children of the program that left its process group (setsid) and are in no such control group are
// found as well: on Linux the keeper and the owner adopt the orphans among their descendants, and kill
// them until there is no child any more. A tree of processes that goes on forking may be faster. Each
// of the two gives up 10 s after the first SIGKILL; Left names what is left then.
//
// # Process IDs
//
// A process ID can be reused once its process was waited for. The program is waited for last, when
// the owner has confirmed that it will not signal the group again.
//
// # Time
//
// Deadlines are readings of Now, a clock that all processes of the machine share and that cannot be
// set; on Linux it goes on in suspend, and so does the alarm of the keeper.
//
// # Not guaranteed
//
// The death of any process when two of the three fail at the same time: keeper and owner are stopped,
// or the keeper is killed and the owner is stopped. If both are killed, the program dies but its
// children do not, and the control group stays; the next Start below the same control group removes it,
// if it is empty by then. The death of a process that the kernel cannot kill now (it waits for a disk or
// network file system), or whose machine is suspended. Without a control group, the death of a process
// that runs as another user, or of a whole tree that goes on forking. On systems other than Linux there
// is no death signal and no adoption: see Promises.
package job
