// Package subprocess starts this executable again as a second process that works for this one, with
// a pipe for orders to it and a pipe for its reports. The keepers of package keeper and of "eldest
// run" use it.
//
// Orders and reports are lines. Writing to a process that has stopped reading does not block
// (Offer).
//
// The subprocess detects the death of its parent by a pidfd, the descriptor that Linux has for
// processes (since 5.3). A pidfd becomes readable when the last thread of its process has ended:
// after the process has closed its files, and after the kernel has freed its memory. From then on
// nothing of the process runs. On other systems Parent returns an error that wraps
// errors.ErrUnsupported.
package subprocess

import "time"

// Dying is how long the death of a process may take after its files are closed: the kernel frees
// its memory first, which takes 64 ms for each GB.
const Dying = time.Minute
