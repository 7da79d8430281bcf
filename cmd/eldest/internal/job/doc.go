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
// Children of the program that left its group (setsid) are found all the same: on Linux
// keeper and owner adopt the orphans among their descendants, so what is left after the
// program's end turns up as their child, and is killed, until there is no child any more.
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
// dies but its children do not. Nor the death of a process that the kernel cannot kill
// now (waiting for a disk or network file system), that runs as another user, or whose
// machine stands still. On systems other than Linux there is neither death signal nor
// adoption: see Promises.
package job
