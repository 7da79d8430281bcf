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
		Long:  runHelp + candidateHelp + runEnd + connect.Help,
		Example: `  eldest run nightly-jobs -- /usr/bin/worker --queue jobs
  eldest run nightly-jobs --restart always --ttl 5s --grace 2s -- sh -c 'echo "token $ELDEST_TOKEN"; exec worker'`,
		Args: o.take,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return (&runner{cmd: cmd, runOptions: *o}).run()
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; flags of the program go after --: eldest run ELECTION -- CMD [ARG]...", err)
	})
	o.candidateFlags = addCandidateFlags(cmd, "leader")
	fl := cmd.Flags()
	fl.StringVar(&o.value, "value", defaultValue(), "what other clients read about the candidate")
	fl.Lookup("value").DefValue = "host name and process ID"
	fl.DurationVar(&o.grace, "grace", 0,
		"time between SIGTERM and SIGKILL, at most half of --ttl and a quarter of --heartbeat; 0s sends only SIGKILL (default: a quarter of --heartbeat or else --ttl)")
	fl.StringVar(&o.restart, "restart", restartNever, "when to be a candidate again: always, on-failure or never")
	fl.BoolVar(&o.exitCode, "exit-code", false, "end with the program's exit code")
	fl.StringVar(&o.onWin, onWin, "", "shell command to run after each win, before the program; if it fails, the program is not started")
	fl.StringVar(&o.onLoss, onLoss, "", "shell command to run after each tenure, when the program has ended and the key is deleted")
	fl.DurationVar(&o.hookTimeout, "hook-timeout", 10*time.Second, "how long --on-win and --on-loss may take before they are killed and count as failed")
	fl.StringVar(&o.health, health, "", "shell command whose exit code 0 means that the program is healthy; without a success in time the lease is no longer renewed")
	fl.DurationVar(&o.healthEvery, "health-every", 5*time.Second, "time between two --health commands, and the limit of each")
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

// runHelp and runEnd are what a user must know; docs/run.md has the rest, with the tests.
const (
	runHelp = `Is a candidate in an election, and runs CMD while it leads and at no other time. CMD is
the words after --, and not a shell command line. It must stay in the foreground: when it
ends, all processes that it has started are killed, and leadership is released at once.

CMD runs in a session and process group of its own, below a second process of eldest, the
keeper. stdout and stderr are CMD's; stdin too, unless it is a terminal: then it is empty,
and there is no /dev/tty. eldest writes its events to stderr. CMD's environment is that of
eldest, and
  ELDEST_ELECTION   the name of the election
  ELDEST_CANDIDATE_KEY  the key with which it leads, as "eldest list" shows it
  ELDEST_TOKEN      the token of the tenure: pass it to stores that refuse older ones
  ELDEST_DEADLINE   the time until which leadership was certain when CMD was started
                    (RFC 3339). Renewals extend it, but do not change the variable.

How CMD ends. The deadline is the moment from which etcd may let another candidate lead,
less a margin (a tenth of the TTL, at least 200 ms).
  renewals, or heartbeats,  SIGTERM --grace before the deadline, SIGKILL at the deadline, even
  are not confirmed         if etcd is back by then. If only heartbeats failed, and --restart
                            is not "never", CMD is started again with the same token when
                            etcd confirms that the key still exists
  the key is deleted, or    SIGKILL at once: another candidate may lead already
  the lease revoked
  eldest transfer           SIGTERM, and SIGKILL after --grace; then the next one leads
  SIGTERM, SIGINT           the same signal, and SIGKILL after --grace; at the second one at
                            once (not the same one within 0.3 s)
  HUP, QUIT, USR1, USR2,    passed on; without a program HUP and QUIT end eldest
  WINCH
  eldest or the keeper      SIGKILL at once, by the other one. If eldest was killed the keeper
  is killed                 then, on Linux, revokes the lease
  eldest or the keeper      SIGKILL at the deadline, by the other one
  is stopped
The key is removed, and the lease revoked, only when no process of CMD runs. If one still
exists 10 s after SIGKILL, eldest stops trying and releases nothing: the key is deleted when
the lease expires, and the exit code is 1, or 3 if leadership was lost.

On Linux CMD runs in a control group (cgroup version 2, Linux 5.14), which is killed in one
step. eldest needs the permission to make it: as root, or with Delegate=yes in the systemd
unit, and a /sys/fs/cgroup that is not read-only. Without it a notice gives the reason, and
eldest searches one by one for processes that have left the process group.

--restart sets when to be a candidate again, with a new key, after a pause of 1 s that
doubles up to 30 s as long as each candidacy ends within 10 s: "on-failure" after an exit
code other than 0, a signal, a hook that failed, and leadership that was lost; "always" after
success, too. With both, eldest is a candidate again after a transfer.

--on-win runs after each win, before CMD, with CMD's environment. If it fails, CMD is not
started and leadership is given up: a failure. --on-loss runs after each tenure, when
no process of CMD runs and the key is deleted: another candidate may lead already. It has
ELDEST_ELECTION, ELDEST_CANDIDATE_KEY, ELDEST_TOKEN, ELDEST_CAUSE (why the tenure ended) and, if CMD
ran, ELDEST_EXIT_CODE. Its failure changes nothing; if eldest is killed, it is not run.
--health runs every --health-every, with CMD's environment and ELDEST_PID; after three times
--health-every without a success the lease is no longer renewed, and leadership ends at the
deadline.

It prints one line per event: registered, waiting, leader, delayed (won right after an
outage: CMD is started once the lease is renewed), started, stopping, exited, hook,
unhealthy, healthy, at-risk, recovered, suspended, resumed, evicted, requeued, drained,
lost, resigned, restarting. With --json each is an object with event, time, election, key,
token, lease, and where they apply predecessor, queue, cause, led, remaining_ms, pid,
exit_code, hook. restarting (with cause, in_ms), notice (text) and the last line of a
failure, failed (cause, exit_code), have only event, time and election. CMD's own stderr is
between the lines, unless CMD redirects it.
`
	runEnd = `
Not guaranteed:
- A program may end too late if the kernel cannot kill it (it waits for a disk or a network
  file system), or if the whole machine is suspended or paused.
- Without a control group, a process that runs as another user, or processes that go on
  forking, may not end at all.
- CMD may not be killed if two of eldest, keeper and CMD's parent are stopped or killed at
  the same time.
- What CMD has sent before it was killed may arrive later: let the store that CMD writes to
  refuse older tokens.
- On systems other than Linux less is guaranteed; eldest reports that at the start.

Exit codes: 0 the program succeeded, or a signal or a transfer ended eldest; 1 the program
or --on-win failed, or eldest did; 2 bad usage; 3 leadership, the position in the queue or the
session was lost. With --exit-code, if the program ended by itself or after a signal to
eldest: its exit code, 128 and the signal's number if a signal killed it, 127 if it could not
be started (a program that does not exist is bad usage).
`
)
