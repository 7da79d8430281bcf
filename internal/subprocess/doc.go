// Package subprocess starts this executable once more as a process that helps this one, with a pipe for
// orders to it and a pipe for its reports. It is what the keepers of package keeper and of "eldest
// run" have in common.
//
// Orders and reports are lines. Nobody waits for a process that has stopped reading (Offer).
//
// The subprocess knows that its parent is dead by the descriptor that Linux has for processes (pidfd,
// since 5.3). A pidfd becomes readable when the last thread of its process has ended: after the
// process has closed its files, and after the kernel has freed its memory. From then on nothing of
// it runs any more. On other systems Parent returns an error that wraps errors.ErrUnsupported.
package subprocess

import "time"

// Dying is how long a process may take to be dead after its files are closed: the kernel frees its
// memory first, 64 ms for each GB.
const Dying = time.Minute
