//go:build unix

package main

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
)

func newRunCmd() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run ELECTION -- CMD [ARG]...",
		Short:   "Run a program only while leading",
		Long:    runHelp + connect.Help,
		Example: runExample,
		Args:    o.take,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if err := o.conn.Resolve(cmd); err != nil {
				return err
			}
			return newRunner(cmd, o).run()
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; flags of the program go after --: eldest run ELECTION -- CMD ARG", err)
	})
	o.standFlags = addStandFlags(cmd, "leader")
	fl := cmd.Flags()
	fl.StringVar(&o.value, "value", "", "what others see of the candidate (default: host name and process ID)")
	fl.DurationVar(&o.grace, "grace", 0,
		"time between SIGTERM and SIGKILL, at most half of --ttl and a quarter of --heartbeat; 0s is SIGKILL alone (default: a quarter of --heartbeat or else --ttl)")
	fl.StringVar(&o.restart, "restart", restartNever, "when to stand again: always, on-failure or never")
	fl.BoolVar(&o.exitCode, "exit-code", false, "end with the program's exit code")
	fl.StringVar(&o.onWin, "on-win", "", "shell command to run after each win, before the program; if it fails, the program is not started")
	fl.StringVar(&o.onLoss, "on-loss", "", "shell command to run after each tenure, when the program is dead and the key released")
	fl.DurationVar(&o.hookTimeout, "hook-timeout", 10*time.Second, "how long --on-win and --on-loss may take before they are killed and count as failed")
	fl.StringVar(&o.health, "health", "", "shell command that says, by exit code 0, that the program is well; without that the lease is not renewed")
	fl.DurationVar(&o.healthEvery, "health-every", 5*time.Second, "time between two --health commands, and the limit of each")
	return cmd
}

const runExample = `  eldest run nightly-jobs -- /usr/bin/worker --queue jobs
  eldest run nightly-jobs --restart always --ttl 5s --grace 2s -- sh -c 'echo "token $ELDEST_TOKEN"; exec worker'`

// runHelp says what is promised and what is not.
const runHelp = `Stands in an election and runs CMD while it leads, and at no other time. CMD gets what
follows --, word by word; it is no shell line. It must stay in the foreground: when it
ends, whatever it has started is killed, and leadership is released at once.

It runs as the head of a process group and session of its own, under a second process of
eldest, the keeper. stdin (unless it is a terminal: then it is empty), stdout and stderr
are CMD's, but there is no /dev/tty for it; the events are written to stderr. Its
environment is that of eldest, and
  ELDEST_ELECTION   the name of the election
  ELDEST_KEY        the key with which it leads, as "eldest list" shows it
  ELDEST_TOKEN      the token of the tenure: pass it to stores that refuse older ones
  ELDEST_DEADLINE   until when leadership was certain when CMD was started (RFC 3339). It
                    moves on with each renewal; the variable does not.
A TLS key for etcd that eldest itself had from ELDEST_KEY is passed on in ELDEST_TLS_KEY,
where eldest commands within CMD find it.

How it ends. The deadline is the moment from which etcd may let another lead, less a
margin (a tenth of the TTL, at least 200 ms).
  - Renewals fail: --grace before the deadline the group gets SIGTERM, at the deadline
    SIGKILL. The margin is what the kill has to take effect. A program that has been sent
    SIGTERM is not kept, even if etcd comes back; and only when nothing of it runs is the
    lease given back.
  - Heartbeats (--heartbeat) are not confirmed: the same, --grace before and at their deadline,
    if that is sooner. Unless --restart is "never", CMD is started anew when etcd says that
    the key still stands: same key, same token, no pause. --grace is at most a quarter of
    --heartbeat, and that by default.
  - The key is deleted, the lease revoked from outside: SIGKILL at once, for another may
    lead already.
  - It is asked to retire (eldest transfer): CMD gets SIGTERM, and SIGKILL after --grace;
    only then the key goes, and the next one leads.
  - SIGTERM or SIGINT to eldest: CMD gets the same signal, and SIGKILL after --grace; only
    then the key goes. The second one is SIGKILL at once (not the same one within 0.3 s).
    Other signals (HUP, QUIT, USR1, USR2, WINCH) are passed on; without a program HUP and
    QUIT end eldest.
  - eldest is killed: the keeper kills the group at once and then, on Linux, revokes the
    lease: the next one leads within milliseconds. eldest is stopped: the keeper kills
    the group at the deadline. The keeper is killed: CMD gets SIGKILL from the kernel, its
    children from eldest. The keeper is stopped: eldest kills them.
  - A process of CMD is still there 10 s after SIGKILL: eldest stops trying, releases
    nothing, so that the key ends with the TTL, and exits with 1, or 3 if leadership was
    lost, whatever --restart and --exit-code say.

On Linux, CMD runs in a control group of its own (cgroup version 2, Linux 5.14), below that
of eldest: all processes in it are killed in one step. eldest needs the permission to make
it: as root, or with Delegate=yes in the systemd unit, and a /sys/fs/cgroup that is not
read-only. Where it cannot, a notice says why, and eldest looks for children that have left
the process group one by one.

--restart says when to stand again, with a new key, after a pause of 1 s that doubles up
to 30 s while programs end within 10 s: "on-failure" after an exit code other than 0, a
signal, a hook that failed, and leadership that was lost; "always" after success, too.
After leadership was handed over both stand again; "never" ends with 0 then, or, with
--exit-code, as CMD did.

--on-win runs after each win, before CMD, with CMD's environment. If it fails, or is not
done within --hook-timeout, CMD is not started and leadership is given up: a failure.
--on-loss runs after each tenure, CMD started or not, when nothing of it runs any more and
the key was released or lost: another may lead already. It has ELDEST_ELECTION, ELDEST_KEY,
ELDEST_TOKEN, ELDEST_CAUSE (why it ended) and, if CMD ran, ELDEST_EXIT_CODE. Its failure is
told and changes nothing. If eldest is killed, --on-loss is not run.

--health is run every --health-every, with CMD's environment and ELDEST_PID. One that fails
or takes longer than --health-every counts as no success; after three times --health-every
without a success the lease is not renewed any more, and leadership ends at the deadline:
at the latest three times --health-every, a quarter of the TTL and the TTL after the last success.

It prints one line per event: registered, waiting, leader, delayed (won right after an
outage: CMD is started once the lease is renewed), started, stopping, exited, hook,
unhealthy, healthy, jeopardy, recovered, suspended, resumed, evicted, stepped-back, retired,
lost, resigned, restarting. With --json each is an object with event, time, election, key, token, lease, and where they apply predecessor,
queue, cause, led, remaining_ms, pid, exit_code, hook. restarting (with cause, in_ms), and
what else eldest writes, notice (text) and the last line of a failure, failed (cause,
exit_code), have event, time and election alone. CMD's own stderr is between the lines,
unless CMD sends it elsewhere.
` + heartbeatHelp + transferHelp + httpHelp + `
Not guaranteed: that a program which the kernel cannot kill (it waits for a disk or a
network file system), or whose whole machine is suspended or paused, is dead in time;
without a control group, that a process which runs as another user, or processes that go
on forking, are dead at all; that anything kills it when two of eldest, keeper and program's
parent are out of order at the same time: both stopped, or the keeper killed and eldest
stopped; if both are killed, CMD dies but not its children. What CMD has sent off before
it was killed may arrive later. Against all that helps the token: let the store that CMD
writes to refuse older ones. On systems other than Linux there is neither a death signal
nor a way to find children that left the group; eldest says so at the start.

Exit codes: 0 the program succeeded, or a signal ended eldest; 1 the program or --on-win
failed, or eldest did; 2 bad usage; 3 leadership, the place in the queue or the session was
lost. With --exit-code, if the program ended by itself or after a signal to eldest: its exit
code, 128 and the signal's number if a signal killed it, 127 if it could not be started (a
program that is not there at all is bad usage).
`
