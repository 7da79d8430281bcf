// Package job runs one program so that it is dead by a deadline, whichever of the
// processes that watch over it is killed or stands still.
//
// # Three processes
//
// The owner ("eldest run", which knows the lease) starts a keeper: the same executable
// once more, with nothing to do but this. The keeper starts the program, as the head of
// a process group and session of its own, so that no terminal stops it, and hooks beside it. Each kills without the other:
//
//   - the keeper, when the latest deadline that it was told of has come: an owner that
//     stands still tells of no newer ones. And at once when the pipe from the owner ends,
//     which it does however the owner died. A keeper that was stopped meanwhile is woken
//     by the owner's death.
//   - the owner, when it says so (Kill), by itself: it does not need the keeper for that.
//     A keeper that does not confirm is killed, too; and on Linux one that has not noticed
//     the program's end for 5 s.
//   - the kernel: the program has SIGKILL for a death signal of its parent, the keeper.
//
// # Everything below
//
// On Linux the owner makes a control group (cgroup version 2) below its own, and the keeper
// starts program and hooks in it. Both have its cgroup.kill open, and kill all that is in it
// with one write, however fast it forks and as whichever user it runs. The one that ends last
// removes it. Each has a lock on it, by which others see that it is in use. Where no control group can be made, or no process be started in it, Ungrouped
// says why.
//
// Children of the program that left its process group (setsid) and are in no control group of
// ours are found all the same: on Linux keeper and owner adopt the orphans among their
// descendants, so what is left after the program's end turns up as their child, and is killed,
// until there is no child any more. A tree of processes that goes on forking may be faster.
// Each of the two gives up 10 s after the first SIGKILL; Left says what is left then.
//
// # Process IDs
//
// An ID is free for the next process once its owner was waited for. The program is waited
// for last, when the owner has confirmed that it will not signal the group again.
//
// # Time
//
// Deadlines are readings of Now, a clock that all processes of the machine share and that
// nobody sets; on Linux it goes on in suspend, and so does the keeper's alarm.
//
// # Not guaranteed
//
// That anything dies when two of the three are out of order at the same time: keeper and
// owner stopped; the keeper killed and the owner stopped. If both are killed, the program
// dies but its children do not, and the control group stays; the next Start below the same
// control group removes it, if it is empty by then. Nor the death of a process that the
// kernel cannot kill now (waiting for a disk or network file system), or whose machine is
// suspended. Without a control group, nor that of a process that runs as another user, or of
// a whole tree that goes on forking. On systems other than Linux there is neither death
// signal nor adoption: see Promises.
package job
