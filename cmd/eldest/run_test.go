//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
)

// witnessed runs "eldest run" with the witness A, calls do while it works, and requires that it ends
// with the code and leaves no key.
func witnessed(t *testing.T, flags string, how []string, code int, do func(r *clitest.Process, d *diary)) {
	t.Helper()
	t.Parallel()
	heedHangups(t)
	etcd := borrowed(t)
	r := etcd.witness("svc "+flags, "A", how...)
	program(r)
	r.Rewind()
	etcd.lives("A")
	do(r, etcd.diary)
	r.Exits(code)
	require.Empty(t, etcd.keys())
}

func TestRunPassesSignalsOn(t *testing.T) {
	witnessed(t, "--ttl 60s --grace 20s --exit-code", nil, 5, func(r *clitest.Process, d *diary) {
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1} {
			r.Signal(sig)
			d.received("A", sig)
		}
		d.lives("A")
		r.Signal(syscall.SIGINT)
		require.Equal(t, "ended by SIGINT", r.Told("stopping")["cause"])
		d.received("A", syscall.SIGINT)
		require.EqualValues(t, 5, r.Told("exited")["exit_code"])
		require.False(t, d.told("A", syscall.SIGTERM), "SIGINT became SIGTERM")
	})
}

// The second signal does not wait for the grace.
func TestRunEndsAtTheSecondSignal(t *testing.T) {
	witnessed(t, "--ttl 60s --grace 30s", []string{stubborn, parent}, cli.ExitOK, func(r *clitest.Process, d *diary) {
		r.Signal(syscall.SIGTERM)
		d.received("A", syscall.SIGTERM)
		r.Signal(syscall.SIGINT)
	})
}

// Signals that were sent to a stopped eldest are received when it continues: the one that ends it is
// not displaced by the others.
func TestRunReceivesWhatWasSentWhileItWasStopped(t *testing.T) {
	witnessed(t, "--ttl 60s --grace 20s", nil, cli.ExitOK, func(r *clitest.Process, d *diary) {
		clitest.Halt(t, r.Process)
		for range 10 {
			for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGWINCH, syscall.SIGTERM} {
				r.Signal(sig)
			}
		}
		r.Signal(syscall.SIGCONT)
		d.received("A", syscall.SIGTERM)
		require.EqualValues(t, 0, r.Told("exited")["exit_code"])
	})
}

// Service managers send SIGTERM to all processes of a service: the program still ends in good order.
func TestRunEndsWhenAllOfItAreTold(t *testing.T) {
	witnessed(t, "--ttl 60s", nil, cli.ExitOK, func(r *clitest.Process, d *diary) {
		_, keeper := program(r)
		for range 3 {
			require.NoError(t, keeper.Signal(syscall.SIGTERM))
		}
		d.lives("A")
		require.NoError(t, keeper.Signal(syscall.SIGTERM))
		r.Signal(syscall.SIGTERM)
		r.Told("exited")
	})
}

// A keeper that was stopped, and continues after the last deadline that it had received, finds newer
// ones in its pipe: nothing is wrong, and the program goes on.
func TestRunKeeperThatWakesUp(t *testing.T) {
	witnessed(t, "--ttl 8s", nil, cli.ExitOK, func(r *clitest.Process, d *diary) {
		_, keeper := program(r)
		clitest.Halt(t, keeper)
		d.livesFor("A", 8500*time.Millisecond)
		require.NoError(t, keeper.Signal(syscall.SIGCONT))
		d.livesFor("A", 500*time.Millisecond)
		require.False(t, d.told("A", syscall.SIGTERM))
		r.Signal(syscall.SIGTERM)
		d.received("A", syscall.SIGTERM)
	})
}

// If no process reads the events, or none can any more, the program goes on, and ends in good order
// or hands leadership over. The pipe is full before the first event, so that each event is one too
// many. A wait for the reader would take longer than the test waits.
func TestRunGoesOnWhenNobodyReadsItsEvents(t *testing.T) {
	t.Parallel()
	full := func(reader *os.File) { clog(t, reader.Fd()) }
	for name, c := range map[string]struct {
		prepare func(reader *os.File)
		over    bool // leadership is handed over
	}{
		"full":                  {full, false},
		"full, and handed over": {full, true},
		"closed":                {func(reader *os.File) { require.NoError(t, reader.Close()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := borrowed(t)
			reader, writer, err := os.Pipe()
			require.NoError(t, err)
			defer func() { _, _ = reader.Close(), writer.Close() }()
			c.prepare(reader)
			cmd := etcd.command("run", "svc", "--ttl", "6s", "--grace", "500ms", "--command-timeout", "1m", "--", "witness", "A")
			cmd.Stderr = writer
			p := clitest.Start(t, cmd)
			etcd.livesFor("A", longer)
			left := 0
			if c.over {
				left = 1
				_, second := etcd.campaign("waiting", "svc")
				etcd.partakes("svc", 2)
				etcd.does("transfer", "svc", "--to", second["key"].(string), "--timeout", patience.String())
			} else {
				p.Signal(syscall.SIGTERM)
			}
			p.Exits(cli.ExitOK) // it does not restart
			require.Len(t, etcd.candidates(), left)
		})
	}
}

// The time until which leadership is certain is computed with the clock as it was before the lease
// was read: if the process is stopped in between, the time must not be later.
func TestRunDeadlineIsNotTooLate(t *testing.T) {
	_, text, _ := strings.Cut(untilWhen(func() time.Duration {
		time.Sleep(50 * time.Millisecond) // as if stopped
		return time.Second
	}), "=")
	deadline, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	require.Less(t, time.Until(deadline), 960*time.Millisecond)
}

// ELDEST_KEY is the TLS key everywhere: an "eldest run" in another one, and eldest commands in a
// program, find it. No variable of a program is that of a connection flag, and none of the outer
// program is left in the inner one.
func TestRunEnvironment(t *testing.T) {
	variables := []string{envElection, envKey, envToken, envDeadline, envCause, envExitCode, envPID}
	for _, flag := range connect.FlagNames {
		require.NotContains(t, variables, connect.VariableOf("ELDEST_", flag))
	}
	for _, name := range variables {
		t.Setenv(name, "stale")
	}
	t.Setenv("ELDEST_KEY", "/etc/key.pem")
	outer := tenureEnv("svc", "svc/1")
	for range 2 { // the environment of a program, and of one that an "eldest run" in it runs
		require.Subset(t, outer, []string{"ELDEST_ELECTION=svc", "ELDEST_CANDIDATE_KEY=svc/1", "ELDEST_KEY=/etc/key.pem"})
		require.NotRegexp(t, "=stale|=outer", strings.Join(outer, "\n"))
		for _, v := range append(outer, ofToken(7), "ELDEST_CAUSE=outer") {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv(name, value)
		}
		inner := tenureEnv("svc", "svc/1")
		require.ElementsMatch(t, outer, inner)
		outer = inner
	}
}

// A program that reads from the terminal at which eldest was started, or sets it up, is not stopped:
// a stopped program would lead and do nothing, without any message.
//
// Fails when the program is in the session of the terminal, but not in the foreground group.
func TestRunIsNotStoppedByItsTerminal(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	cmd := etcd.command("run", "svc", "--ttl", "60s", "--", "sh", "-c",
		"stty sane <&1; echo set $?; cat; echo empty $?; read x </dev/tty; echo end")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // as a shell's
	p := clitest.Start(t, cmd)
	var shown clitest.Sheet
	go func() {
		buffer := make([]byte, 1000)
		for {
			n, err := ours.Read(buffer)
			_, _ = shown.Write(bytes.ReplaceAll(buffer[:n], []byte("\r"), nil))
			if err != nil {
				return // the terminal is closed
			}
		}
	}()
	_, ended := clitest.Awaited(p.Done)
	require.True(t, ended, "it is stopped: %s", &shown)
	require.Zero(t, p.ProcessState.ExitCode(), shown.String())
	for _, line := range []string{"set 0\n", "empty 0\n", "end\n"} { // the last ones may still be on their way
		require.Eventually(t, func() bool { return strings.Contains(shown.String(), line) }, patience, time.Millisecond, "no %q in %s", line, &shown)
	}
	require.Empty(t, etcd.keys())
}

// The same signal once more within a moment counts as one signal, because timeout(1) signals a
// process and its group. Another signal, or the same one later, counts as the second.
func TestRunTakesTheSameSignalTwiceForOne(t *testing.T) {
	for name, c := range map[string]struct {
		sig   syscall.Signal
		after time.Duration
		again bool
	}{
		"at once":      {syscall.SIGTERM, 0, false},
		"just in time": {syscall.SIGTERM, repeated - 1, false},
		"later":        {syscall.SIGTERM, repeated, true},
		"another one":  {syscall.SIGINT, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ending, end := context.WithCancelCause(t.Context())
				defer end(nil)
				s := &runSignals{forward: make(chan syscall.Signal, 1), again: make(chan struct{}, 1), end: end}
				s.program.Store(true)
				s.sort(syscall.SIGTERM)
				require.Error(t, ending.Err())
				require.Equal(t, syscall.SIGTERM, signalOf(ending))
				time.Sleep(c.after)
				s.sort(c.sig)
				require.Equal(t, c.again, len(s.again) == 1)
				require.Empty(t, s.forward)
			})
		})
	}
}
