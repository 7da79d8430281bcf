//go:build unix

package job

import (
	"errors"
	"time"
)

// HookResult is how a hook ended.
type HookResult struct {
	Status   Status
	TimedOut bool
	// Err is why it did not run to its end, or at all.
	Err error
}

// Failure is nil for a success, else what went wrong.
func (r HookResult) Failure() error {
	switch {
	case r.Err != nil:
		return r.Err
	case r.TimedOut:
		return errors.New("it took too long and was killed")
	case !r.Status.OK():
		return errors.New(r.Status.String())
	}
	return nil
}

// Command is a process to run.
type Command struct {
	// Path is the executable, Args[0] what it is called.
	Path string
	Args []string
	Env  []string
	// Limit is how long a hook may take; 0 is no limit. Mute drops what it writes to
	// stdout.
	Limit time.Duration
	Mute  bool
}

// Shell is a command line for /bin/sh.
func Shell(text string, env []string, limit time.Duration) Command {
	return Command{Path: "/bin/sh", Args: []string{"sh", "-c", text}, Env: env, Limit: limit}
}
