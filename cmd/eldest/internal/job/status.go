//go:build unix

package job

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Deadline is when a program must have ended, as readings of Now.
type Deadline struct {
	// Term is when it is sent SIGTERM, Kill when SIGKILL; Term is not after Kill, and
	// where both are the same there is no SIGTERM.
	Term time.Duration `json:"term"`
	Kill time.Duration `json:"kill"`
}

// Status is how a process ended. The zero value is a success.
type Status struct {
	// Code is the exit code; 0 after a signal.
	Code int `json:"code"`
	// Signal is what killed it; 0 is none.
	Signal syscall.Signal `json:"signal,omitempty"`
	// Unknown says that nobody could find out: the keeper died.
	Unknown bool `json:"unknown,omitempty"`
}

// OK reports whether the process says that it succeeded.
func (s Status) OK() bool { return s == Status{} }

// Exit is the exit code as a shell reports it: 128 and the signal after a signal; 255
// where it is unknown.
func (s Status) Exit() int {
	switch {
	case s.Unknown:
		return 255
	case s.Signal != 0:
		return 128 + int(s.Signal)
	}
	return s.Code
}

// String says it in words.
func (s Status) String() string {
	switch {
	case s.Unknown:
		return "nobody knows how it ended"
	case s.Signal != 0:
		return "killed by " + unix.SignalName(s.Signal)
	}
	return fmt.Sprintf("exit code %d", s.Code)
}

func statusOf(w unix.WaitStatus) Status {
	if w.Signaled() {
		return Status{Signal: w.Signal()}
	}
	return Status{Code: w.ExitStatus()}
}
