package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec is what a keeper receives when it is started: what it may run, and what it does at the end. It
// has a pipe of its own, so that orders are short and never wait for space in theirs.
type Spec struct {
	Program Command
	// Hooks are run beside the program, or before it, one at a time. The keys are their names.
	Hooks map[string]Command
	// Env is the environment of all of these. Launch and Run add what is known later.
	Env []string
	// Farewell is for prepare of Keep, for when the owner has died; nil if there is nothing to do.
	Farewell []byte
	// Messages makes the program inherit the read end of a pipe, as MessagesFD, for Job.Send.
	Messages bool
	// Cgroup is the path of the control group in which processes are started. Start sets it.
	Cgroup string
	// Owner is the process ID of the owner. Start sets it.
	Owner int
}

// Command is a process to run.
type Command struct {
	// Path is the executable, Args[0] the name by which it is called.
	Path string
	Args []string
	// Limit is how long a hook may take; 0 is no limit. Mute discards what it writes to stdout.
	Limit time.Duration
	Mute  bool
}

// Shell is a command line for /bin/sh.
func Shell(text string, limit time.Duration) Command {
	return Command{Path: "/bin/sh", Args: []string{"sh", "-c", text}, Limit: limit}
}

// Deadline is when a program must have ended, as readings of Now.
type Deadline struct {
	// Term is when SIGTERM is sent, Kill when SIGKILL is sent. Term is not after Kill; if both are
	// the same, there is no SIGTERM.
	Term time.Duration `json:"term"`
	Kill time.Duration `json:"kill"`
}

// order is one line from the owner to its keeper. Orders are executed one after another.
type order struct {
	// Deadline replaces the one before, unless that has begun to take effect.
	Deadline *Deadline `json:"deadline,omitempty"`
	// Start starts the program (""), or confirms that it runs; or it starts a hook.
	Start *startOrder `json:"start,omitempty"`
	// StopBy is a reading of Now: the program has been asked to end and is killed then, whatever
	// deadlines may follow.
	StopBy time.Duration `json:"stop_by,omitempty"`
	// Kill kills everything, now.
	Kill bool `json:"kill,omitempty"`
	// Dismissed means that the owner has ended the job and lives on.
	Dismissed bool `json:"dismissed,omitempty"`
	// Reap means that the owner will not signal the program's group any more.
	Reap bool `json:"reap,omitempty"`
}

type startOrder struct {
	Hook string   `json:"hook,omitempty"`
	Env  []string `json:"env,omitempty"` // added to Spec.Env; short, and text
}

// report is one line from the keeper to its owner.
type report struct {
	// Started is the program's process ID.
	Started int `json:"started,omitempty"`
	// Running means that the program runs already.
	Running bool `json:"running,omitempty"`
	// Refused is why the program was not started.
	Refused string `json:"refused,omitempty"`
	// Ungrouped is why a process was started outside of the control group.
	Ungrouped string `json:"ungrouped,omitempty"`
	// Warned means that the deadline is near and the program has been sent SIGTERM.
	Warned bool `json:"warned,omitempty"`
	// Hook is how a hook ended, or why it did not start.
	Hook *HookResult `json:"hook,omitempty"`
	// Cleared means that nothing runs any more; the program was not waited for yet.
	Cleared bool `json:"cleared,omitempty"`
	// Reaped is how the program ended.
	Reaped *Status `json:"reaped,omitempty"`
}

// line renders a message.
func line(message any) []byte {
	data, err := json.Marshal(message)
	if err != nil {
		panic(err) // plain structs of strings and numbers
	}
	return append(data, '\n')
}

// Status is how a process ended. The zero value is a success.
type Status struct {
	// Code is the exit code; 0 after a signal.
	Code int `json:"code"`
	// Signal is the signal that killed it; 0 is none.
	Signal syscall.Signal `json:"signal,omitempty"`
	// Unknown means that the status cannot be known, because the keeper died.
	Unknown bool `json:"unknown,omitempty"`
}

// OK reports whether the process succeeded.
func (s Status) OK() bool { return s == Status{} }

// Exit is the exit code as a shell reports it: 128 plus the number of the signal after a signal; 255
// if it is unknown.
func (s Status) Exit() int {
	switch {
	case s.Unknown:
		return 255
	case s.Signal != 0:
		return 128 + int(s.Signal)
	}
	return s.Code
}

// String renders it for people.
func (s Status) String() string {
	switch {
	case s.Unknown:
		return "the exit status is unknown"
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

// HookResult is how a hook ended.
type HookResult struct {
	Status   Status `json:"status"`
	TimedOut bool   `json:"timed_out,omitempty"`
	// Refused is why it did not run to its end, or at all; "" if it did.
	Refused string `json:"refused,omitempty"`
}

// Failure is nil for a success, else what went wrong.
func (r HookResult) Failure() error {
	switch {
	case r.Refused != "":
		return refusal(r.Refused)
	case r.TimedOut:
		return errors.New("it took too long and was killed")
	case !r.Status.OK():
		return errors.New(r.Status.String())
	}
	return nil
}

// ErrOver is the failure of a hook that did not run to its end because the program has ended.
var ErrOver = errors.New("the job has already ended")

// refusal is the error with a text.
func refusal(text string) error {
	for _, err := range []error{ErrOver, ErrLate, ErrKeeper} {
		if text == err.Error() {
			return err
		}
	}
	return errors.New(text)
}
