//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/election"
)

// The values of --restart.
const (
	restartAlways    = "always"
	restartOnFailure = "on-failure"
	restartNever     = "never"
)

// runOptions are the arguments and flags of "eldest run".
type runOptions struct {
	*standFlags

	name string // of the election
	// program is CMD and its arguments; path is the executable that CMD is.
	program []string
	path    string

	value    string
	grace    time.Duration
	restart  string
	exitCode bool

	onWin, onLoss string
	hookTimeout   time.Duration
	health        string
	healthEvery   time.Duration
}

// take splits the arguments at --.
func (o *runOptions) take(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) > 1:
		return fmt.Errorf("put -- before the program: eldest run %s -- %s", cli.Printable(args[0]), cli.Printable(strings.Join(args[1:], " ")))
	case dash == 1 && len(args) > 1:
		o.name, o.program = args[0], args[1:]
		return nil
	case dash > 1:
		return fmt.Errorf("one ELECTION before --, not %d", dash)
	}
	return fmt.Errorf("want an ELECTION and, after --, a program: eldest run ELECTION -- CMD ARG")
}

// maxHookTime bounds what is a duration of a moment; more is a mistake of units.
const maxHookTime = time.Hour

// check refuses bad arguments before anything is sent, and fills in the defaults.
func (o *runOptions) check(cmd *cobra.Command) error {
	if o.value == "" && !cmd.Flags().Changed("value") {
		o.value = defaultValue()
	}
	if err := o.standFlags.check(o.name); err != nil {
		return err
	}
	if len(o.value) > election.MaxValue {
		return cli.Usagef("--value has %d bytes, at most %d are allowed", len(o.value), election.MaxValue)
	}
	// What is asked for in parts of a second is granted in whole ones.
	ttl := (o.ttl + time.Second - 1).Truncate(time.Second)
	if !cmd.Flags().Changed("grace") {
		o.grace = ttl / 4
		if o.heartbeat > 0 {
			o.grace = o.heartbeat / 4
		}
	}
	if err := o.checkGrace(ttl, "--ttl"); err != nil {
		return err
	}
	switch {
	case o.restart != restartAlways && o.restart != restartOnFailure && o.restart != restartNever:
		return cli.Usagef("--restart %s: want %s, %s or %s", cli.Printable(o.restart), restartAlways, restartOnFailure, restartNever)
	case o.hookTimeout <= 0 || o.hookTimeout > maxHookTime:
		return cli.Usagef("--hook-timeout %v: want more than 0s and at most %v", o.hookTimeout, maxHookTime)
	case o.healthEvery < 10*time.Millisecond || o.healthEvery > maxHookTime:
		return cli.Usagef("--health-every %v: want at least 10ms and at most %v", o.healthEvery, maxHookTime)
	case cmd.Flags().Changed("health-every") && o.health == "":
		return cli.Usagef("--health-every without --health: say with --health CMD what is to be run")
	case cmd.Flags().Changed("hook-timeout") && o.onWin == "" && o.onLoss == "":
		return cli.Usagef("--hook-timeout without --on-win or --on-loss: there is no hook to bound")
	}
	for _, flag := range []string{"on-win", "on-loss", "health"} {
		if cmd.Flags().Changed(flag) && strings.TrimSpace(cmd.Flag(flag).Value.String()) == "" {
			return cli.Usagef("--%s is empty: give it a shell command, or leave it out", flag)
		}
	}
	path, err := exec.LookPath(o.program[0])
	if err != nil {
		return cli.Usagef("%s cannot be run: %w; give the path of an executable file, or the name of one in PATH", cli.Printable(o.program[0]), err)
	}
	o.path = path
	return nil
}

// checkGrace refuses a grace for which the TTL, or the time of the heartbeats, is too short: SIGTERM
// would be sent while nothing is wrong but a renewal or a heartbeat that takes long.
func (o *runOptions) checkGrace(ttl time.Duration, what string) error {
	switch {
	case o.grace < 0:
		return cli.Usagef("--grace %v: want 0s or more", o.grace)
	case o.heartbeat > 0 && o.grace > o.heartbeat/4:
		return cli.Usagef("--grace %v is more than a quarter of --heartbeat %v, which must leave time to beat: use --heartbeat %v or more, or --grace %v or less",
			o.grace, o.heartbeat, 4*o.grace, o.heartbeat/4)
	case o.grace > ttl/2:
		return cli.Usagef("--grace %v is more than half of %s, %v, which must leave time to renew: use --ttl %v or more, or --grace %v or less",
			o.grace, what, ttl, (2*o.grace + time.Second - 1).Truncate(time.Second), ttl/2)
	}
	return nil
}
