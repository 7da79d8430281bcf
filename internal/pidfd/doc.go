// Package pidfd tells a process when its parent is dead, by the descriptor that Linux has for
// processes (pidfd, since 5.3). A pidfd becomes readable when the last thread of its process has
// ended: after the process has closed its files, and after the kernel has freed its memory. From
// then on nothing of it runs any more. Elsewhere Parent returns an error that wraps
// errors.ErrUnsupported.
package pidfd

import "time"

// Dying is how long a process may take to be dead whose files are closed: the kernel frees its memory
// first, 64 ms for each GB.
const Dying = time.Minute
