package main

import (
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
)

// The values of --restart.
const (
	restartAlways    = "always"
	restartOnFailure = "on-failure"
	restartNever     = "never"
)

// runOptions are the arguments and flags of "eldest run".
type runOptions struct {
	*candidateFlags

	name string // of the election
	// program is CMD and its arguments; path is the executable file of CMD.
	program []string
	path    string

	value    string
	grace    time.Duration
	standby  bool
	restart  string
	exitCode bool

	onWin, onLoss string
	hookTimeout   time.Duration
	health        string
	healthEvery   time.Duration
}

func newRunCmd() *cobra.Command {
	cmd, _ := runCommand()
	return cmd
}

// runCommand returns the command, and the options that its command line sets.
func runCommand() (cmd *cobra.Command, o *runOptions) {
	o = &runOptions{}
	cmd = &cobra.Command{
		Use:   "run ELECTION -- CMD [ARG]...",
		Short: "Run a program only while leading",
		Long:  runHelp + strings.TrimPrefix(candidateHelp, "\n") + runEnd + connect.Help + runMore,
		Example: `  eldest run nightly-jobs -- /usr/bin/worker --queue jobs
  eldest run jobs --restart always --grace 2s -- sh -c 'exec worker --token "$ELDEST_TOKEN"'`,
		Args: o.take,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return (&runner{cmd: cmd, runOptions: *o}).run()
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; flags of the program go after --: eldest run ELECTION -- CMD ARG", err)
	})
	o.candidateFlags = addCandidateFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&o.value, "value", defaultValue(), "what other clients read about it")
	fl.Lookup("value").DefValue = "host name and PID"
	fl.DurationVar(&o.grace, "grace", 0,
		"from SIGTERM to SIGKILL (default: 1/4 of --heartbeat or --ttl)")
	fl.BoolVar(&o.standby, "standby", false, "start CMD before the win, and tell it when it leads")
	fl.StringVar(&o.restart, "restart", restartNever, "campaign again: always, on-failure or never")
	fl.BoolVar(&o.exitCode, "exit-code", false, "end with the exit code of CMD")
	fl.StringVar(&o.onWin, onWin, "", "shell command that runs after each win, before CMD")
	fl.StringVar(&o.onLoss, onLoss, "", "shell command that runs after each tenure, without the key")
	fl.DurationVar(&o.hookTimeout, "hook-timeout", 10*time.Second, "limit of --on-win and --on-loss")
	fl.StringVar(&o.health, health, "", "shell command that exits with 0 while CMD is healthy")
	fl.DurationVar(&o.healthEvery, "health-every", 5*time.Second, "interval and limit of the --health command")
	return cmd, o
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
	case dash == 0, len(args) == 0:
		return cli.Missing(cmd, "election")
	}
	return cli.Missing(cmd, "program")
}

// maxHookTime bounds the durations of hooks; a longer one is a mistake in the unit.
const maxHookTime = time.Hour

// check refuses bad arguments before anything is sent, and fills in the defaults.
func (o *runOptions) check(cmd *cobra.Command) (err error) {
	if err := o.candidateFlags.check(o.name, o.value, "--value"); err != nil {
		return err
	}
	// etcd grants whole seconds, rounded up.
	ttl := (o.ttl + time.Second - 1).Truncate(time.Second)
	given := cmd.Flags().Changed
	if !given("grace") {
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
	case given("health-every") && o.health == "":
		return cli.Usagef("--health-every without --health: give the command with --health CMD")
	case given("hook-timeout") && o.onWin == "" && o.onLoss == "":
		return cli.Usagef("--hook-timeout without --on-win or --on-loss: there is no hook to bound")
	}
	for _, flag := range []string{onWin, onLoss, health} {
		if given(flag) && strings.TrimSpace(cmd.Flag(flag).Value.String()) == "" {
			return cli.Usagef("--%s is empty: give it a shell command, or leave it out", flag)
		}
	}
	if o.path, err = exec.LookPath(o.program[0]); err != nil {
		return cli.Usagef("%s cannot be run: %w; give the path of an executable file, or the name of one in PATH", cli.Printable(o.program[0]), err)
	}
	return nil
}

// checkGrace refuses a grace for which the TTL, or the heartbeat timeout, is too short: SIGTERM would
// be sent when only a renewal or a heartbeat is slow.
func (o *runOptions) checkGrace(ttl time.Duration, what string) error {
	switch {
	case o.grace < 0:
		return cli.Usagef("--grace %v: want 0s or more", o.grace)
	case o.heartbeat > 0 && o.grace > o.heartbeat/4:
		return cli.Usagef("--grace %v is more than a quarter of --heartbeat %v, which must leave time for heartbeats: use --heartbeat %v or more, or --grace %v or less",
			o.grace, o.heartbeat, 4*o.grace, o.heartbeat/4)
	case o.grace > ttl/2:
		return cli.Usagef("--grace %v is more than half of %s, %v, which must leave time for renewals: use --ttl %v or more, or --grace %v or less",
			o.grace, what, ttl, (2*o.grace + time.Second - 1).Truncate(time.Second), ttl/2)
	}
	return nil
}

// The help of "eldest run" is what a user needs at the terminal; docs/run.md has the rest, with the tests.
const (
	runHelp = `Is a candidate in an election, and runs CMD while it leads and at no other time. When CMD ends, the
processes that it started are killed and leadership is released: CMD must stay in the foreground.
CMD and the hooks have ELDEST_ELECTION, ELDEST_CANDIDATE_KEY, ELDEST_TOKEN (for stores that refuse
older tokens) and ELDEST_DEADLINE (leadership was certain until then when they started); --health
also has ELDEST_PID, and --on-loss has ELDEST_CAUSE and ELDEST_EXIT_CODE instead of the deadline.
eldest writes a line per event to stderr, with --json an object; stdout is CMD's.
CMD receives SIGTERM, and SIGKILL after --grace: before leadership ends because renewals or
heartbeats are not confirmed, for a transfer, and if SIGTERM or SIGINT (passed on) ends eldest. It
is killed at once if the key is deleted or eldest is killed. The key is removed when no process of
CMD runs. --restart campaigns again: on-failure also after a loss or a transfer, always in any case.
With --standby CMD also runs while eldest waits, and reads JSON lines about that: ELDEST_STATUS_FD.
`
	runEnd = `Not guaranteed: that CMD ends while the machine is suspended, or if the kernel cannot kill it.
Exit codes: 0 CMD succeeded, or a signal or a transfer ended eldest; 1 CMD, --on-win or eldest
failed; 2 bad usage; 3 leadership, the position in the queue or the session was lost. --exit-code:
that of CMD, 128 and the number of a signal that killed it, or 127 if it could not be started.
`
	runMore = `
More: https://github.com/eldest-io/eldest/blob/main/docs/run.md`
)
