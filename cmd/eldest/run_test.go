//go:build linux

package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cgrouptest"
)

func TestRunGivesTheProgramItsEnvironmentAndStreams(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	began := time.Now()
	// Stale is what an eldest run around this one has set.
	r := etcd.with("ELDEST_TOKEN=stale", "ELDEST_KEY=stale", "MINE=kept \xff").run("svc", "--ttl", "30s", "--value", "me", "--", "sh", "-c",
		`printf '%s\n' "$ELDEST_ELECTION" "$ELDEST_KEY" "$ELDEST_TOKEN" "$ELDEST_DEADLINE" "$MINE" "$1"; echo err >&2; exec sleep 1000`, "sh", "a\xfe b")
	led := r.event("leader")
	require.Equal(t, "svc\n", r.Line())
	require.Equal(t, led["key"].(string)+"\n", r.Line())
	require.Equal(t, strconv.Itoa(int(led["token"].(float64)))+"\n", r.Line())
	deadline, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(r.Line()))
	require.NoError(t, err)
	require.True(t, deadline.After(began) && deadline.Before(time.Now().Add(30*time.Second)), deadline)
	require.Equal(t, "kept \xff\n", r.Line())
	require.Equal(t, "a\xfe b\n", r.Line())
	r.Says("err\n")
	kv, err := etcd.client.Get(etcd.bounded(), led["key"].(string))
	require.NoError(t, err)
	require.Equal(t, "me", string(kv.Kvs[0].Value))
	r.Signal(syscall.SIGTERM)
	r.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
	require.Zero(t, etcd.leases(), "a lease is left")
}

// When the head of the program ends, its children are killed: leadership is released, and
// another program runs elsewhere.
func TestRunKillsWhatTheProgramLeaves(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	t.Run("control group", func(t *testing.T) {
		groups := cgrouptest.New(t)
		killsWhatTheProgramLeaves(t, etcd.of(t).changed(cgrouptest.In(t, groups)))
		require.Empty(t, glob(groups+"/eldest-run-*"))
	})
	t.Run("no control group", func(t *testing.T) {
		killsWhatTheProgramLeaves(t, etcd.of(t).changed(cgrouptest.In(t, cgrouptest.NewBarren(t))))
	})
}

func killsWhatTheProgramLeaves(t *testing.T, etcd *etcd) {
	diary := newDiary(t)
	stays := filepath.Join(t.TempDir(), "stays")
	require.NoError(t, os.WriteFile(stays, nil, 0o600))
	script := `"$@" & while test -e ` + stays + `; do sleep 0.05; done`
	r := etcd.run(append([]string{"svc", "--ttl", "60s", "--", "sh", "-c", script, "sh"}, diary.program("A", stubborn, parent)...)...)
	diary.lives("A-away")
	require.NoError(t, os.Remove(stays))
	r.event("exited")
	end := time.Now()
	r.Exits(cli.ExitOK)
	for _, s := range diary.signs() {
		require.True(t, s.at.Before(end), s)
	}
	diary.nobody("svc")
	require.Empty(t, etcd.keys())
}

func TestRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	heedHangups(t)
	etcd := borrowed(t)
	diary := newDiary(t)
	r := etcd.run(append([]string{"svc", "--ttl", "60s", "--grace", "20s", "--exit-code", "--"}, diary.program("A")...)...)
	r.event("started")
	diary.lives("A")
	r.Signal(syscall.SIGHUP)
	diary.heard("A", syscall.SIGHUP)
	r.Signal(syscall.SIGUSR1)
	diary.heard("A", syscall.SIGUSR1)
	diary.lives("A")
	r.Signal(syscall.SIGINT)
	require.Equal(t, "ended by SIGINT", r.event("stopping")["cause"])
	diary.heard("A", syscall.SIGINT)
	require.EqualValues(t, 5, r.event("exited")["exit_code"])
	r.Exits(5)
	require.False(t, diary.told("A", syscall.SIGTERM), "SIGINT became SIGTERM")
	require.Empty(t, etcd.keys())
	diary.nobody("svc")
}

// A signal to eldest: the program has its grace while the lease is kept, and the key goes
// when it is dead and no sooner.
func TestRunKeepsTheKeyUntilTheProgramIsDead(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	// The grace is as long as half of the TTL: without renewals it would be cut short.
	a := etcd.run(append([]string{"svc", "--ttl", "10s", "--grace", "5s", "--"}, diary.program("A", stubborn, parent)...)...)
	a.event("started")
	b := etcd.run(append([]string{"svc", "--"}, diary.program("B")...)...)
	b.event("waiting")
	diary.lives("A-away")
	told := time.Now()
	a.Signal(syscall.SIGTERM)
	win := timeOf(t, b.event("leader"))
	diary.lives("B")
	last := diary.inTurn("A", "B", win)
	require.Greater(t, last.Sub(told), 4*time.Second, "it did not have its grace")
	a.Exits(cli.ExitOK)

	// The second one waits for nothing.
	c := etcd.run(append([]string{"other", "--ttl", "60s", "--grace", "30s", "--"}, diary.program("C", stubborn, parent)...)...)
	c.event("started")
	diary.lives("C-away")
	c.Signal(syscall.SIGTERM)
	diary.heard("C", syscall.SIGTERM)
	c.Signal(syscall.SIGINT)
	c.Exits(cli.ExitOK)
	diary.nobodyOf(t, "C")

	// A grace of 0 is SIGKILL alone.
	d := etcd.run(append([]string{"third", "--grace", "0s", "--"}, diary.program("D")...)...)
	d.event("started")
	diary.lives("D")
	d.Signal(syscall.SIGTERM)
	d.Exits(cli.ExitOK)
	require.False(t, diary.told("D", syscall.SIGTERM))
	b.Signal(syscall.SIGTERM)
	b.Exits(cli.ExitOK)
	diary.nobody("svc")
}

// What was sent while it stood still is heard when it goes on: the one that ends it is not
// crowded out by the others.
func TestRunHearsWhatWasSentWhileItStoodStill(t *testing.T) {
	t.Parallel()
	heedHangups(t)
	etcd := borrowed(t)
	diary := newDiary(t)
	r := etcd.run(append([]string{"svc", "--ttl", "60s", "--grace", "20s", "--"}, diary.program("A")...)...)
	r.event("started")
	diary.lives("A")
	clitest.Halt(t, r.Cmd.Process)
	for range 10 {
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGWINCH, syscall.SIGTERM} {
			r.Signal(sig)
		}
	}
	r.Signal(syscall.SIGCONT)
	diary.heard("A", syscall.SIGTERM)
	require.EqualValues(t, 0, r.event("exited")["exit_code"])
	r.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
	diary.nobody("svc")
}

// Until when leadership is certain is said with the clock as it was before the lease was
// looked at: whoever stands still in between must not say more.
func TestRunDeadlineIsNotTooLate(t *testing.T) {
	env := withDeadline(nil, func() time.Duration {
		time.Sleep(50 * time.Millisecond) // stands still
		return time.Second
	})
	_, text, _ := strings.Cut(env[0], "=")
	deadline, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	require.Less(t, time.Until(deadline), 960*time.Millisecond)
}

// Without a program there is nobody to pass a signal to: it leaves the queue.
func TestRunEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	heedHangups(t)
	etcd := borrowed(t)
	leader, _ := etcd.leading("svc")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		r := etcd.run("svc", "--restart", "always", "--on-loss", "echo loss", "--", "sh", "-c", "echo ran")
		r.event("waiting")
		r.Signal(sig)
		require.Equal(t, false, r.event("resigned")["led"])
		r.Exits(cli.ExitOK) // and has written nothing to stdout
		require.Len(t, etcd.standing(), 1)
	}
	r := etcd.run("svc", "--", "sh", "-c", "echo ran")
	etcd.delete(r.event("waiting")["key"].(string))
	r.event("lost")
	r.Exits(cli.ExitLost)
	resigns(leader)
	newDiary(t).nobody("svc")
}

// heedHangups has the processes of a test hear SIGHUP also where the tests themselves run
// under nohup: what is ignored is inherited, what is caught is not.
func heedHangups(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(heard) })
}

// A keeper that is killed before the win is replaced.
func TestRunReplacesAKeeperThatDiesBeforeTheWin(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	leader, _ := etcd.leading("svc")
	r := etcd.run("svc", "--", "sh", "-c", "echo ran")
	r.event("waiting")
	var keeper *os.Process
	require.Eventually(t, func() bool {
		for _, child := range clitest.Children(r.Cmd.Process.Pid) {
			keeper = handle(t, child)
		}
		return keeper != nil
	}, patience, time.Millisecond, "no keeper")
	require.NoError(t, keeper.Kill())
	require.Eventually(t, func() bool { return keeper.Signal(syscall.Signal(0)) != nil }, patience, time.Millisecond)
	resigns(leader)
	require.Equal(t, "ran\n", r.Line())
	r.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
}

// A keeper that stood still, and wakes up after the last deadline that it knew of, finds
// newer ones in its pipe: nothing is wrong, and the program goes on.
func TestRunKeeperThatWakesUp(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	r := etcd.run(append([]string{"svc", "--ttl", "8s", "--"}, diary.program("A")...)...)
	keeper := handle(t, clitest.Parent(t, r.pid()))
	diary.lives("A")
	clitest.Halt(t, keeper)
	diary.livesFor("A", 8500*time.Millisecond)
	require.NoError(t, keeper.Signal(syscall.SIGCONT))
	diary.livesFor("A", 500*time.Millisecond)
	require.False(t, diary.told("A", syscall.SIGTERM))
	r.Signal(syscall.SIGTERM)
	diary.heard("A", syscall.SIGTERM)
	r.Exits(cli.ExitOK)
	diary.nobody("svc")
}

// Both watchers killed: what is promised is the death of the program, by the kernel.
func TestRunProgramDiesWithBothWatchers(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	etcd = etcd.changed(cgrouptest.In(t, cgrouptest.NewBarren(t))) // nobody would be there to remove a control group
	diary := newDiary(t)
	r := etcd.run(append([]string{"svc", "--"}, diary.program("A", stubborn)...)...)
	keeper := handle(t, clitest.Parent(t, r.pid()))
	diary.lives("A")
	clitest.Halt(t, r.Cmd.Process) // so that it cannot be eldest who kills
	require.NoError(t, keeper.Kill())
	diary.nobodyOf(t, "A")
	r.Signal(syscall.SIGKILL)
	r.Exits(-1)
	diary.nobody("svc")
}

// Service managers send SIGTERM to all processes of a service: that ends it in good order.
func TestRunEndsWhenAllOfItAreTold(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	r := etcd.run(append([]string{"svc", "--ttl", "60s", "--"}, diary.program("A")...)...)
	pid := r.pid()
	keeper := handle(t, clitest.Parent(t, pid))
	diary.lives("A")
	for range 3 {
		require.NoError(t, keeper.Signal(syscall.SIGTERM))
	}
	diary.lives("A")
	require.NoError(t, keeper.Signal(syscall.SIGTERM))
	r.Signal(syscall.SIGTERM)
	r.event("exited")
	r.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
	diary.nobody("svc")
}

// Nobody reads the events, or nobody can any more: the program goes on, and ends in good
// order. The pipe is full before the first event, so that each of them is one too many.
func TestRunGoesOnWhenNobodyReadsItsEvents(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	for name, prepare := range map[string]func(t *testing.T, ours, theirs *os.File){
		"full": func(t *testing.T, _, theirs *os.File) {
			require.NoError(t, theirs.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
			_, err := theirs.Write(make([]byte, 1<<20))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "INVALID: the pipe is not full")
		},
		"closed": func(t *testing.T, ours, _ *os.File) { require.NoError(t, ours.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := etcd.of(t)
			diary := newDiary(t)
			ours, theirs, err := os.Pipe()
			require.NoError(t, err)
			defer func() { _, _ = ours.Close(), theirs.Close() }()
			prepare(t, ours, theirs)
			cmd := etcd.command(append([]string{"run", name, "--ttl", "6s", "--grace", "500ms", "--"}, diary.program("A")...)...)
			cmd.Stderr = theirs
			p := clitest.Start(t, cmd)
			diary.livesFor("A", 6500*time.Millisecond) // more than the TTL
			p.Signal(syscall.SIGTERM)
			p.Exits(cli.ExitOK)
			for _, key := range etcd.keys() {
				require.NotContains(t, key, name+"/")
			}
			diary.nobody(name)
		})
	}
}

// An "eldest run" in another one, and eldest commands in a program, find the TLS key that
// ELDEST_KEY was before it became the candidate's key.
func TestRunEnvironmentOfTheTLSKey(t *testing.T) {
	last := func(env []string, name string) (value string, there bool) {
		for _, v := range env {
			if n, text, _ := strings.Cut(v, "="); n == name {
				value, there = text, true
			}
		}
		return value, there
	}
	t.Setenv("ELDEST_TOKEN", "")
	t.Setenv("ELDEST_KEY", "/etc/key.pem")
	require.Equal(t, "ELDEST_KEY", connect.VariableOf("ELDEST_", "key"))
	require.Equal(t, "ETCDCTL_KEY", connect.VariableOf("ETCDCTL_", "key"))
	env := tenureEnv("svc", "svc/1", 7)
	for name, want := range map[string]string{"ELDEST_KEY": "svc/1", "ELDEST_TOKEN": "7", "ELDEST_ELECTION": "svc", "ELDEST_TLS_KEY": "/etc/key.pem"} {
		got, _ := last(env, name)
		require.Equal(t, want, got, name)
	}

	// Within: what that environment means to eldest, and to a run in it.
	for _, name := range []string{"ELDEST_KEY", "ELDEST_TOKEN", "ELDEST_TLS_KEY"} {
		value, _ := last(env, name)
		t.Setenv(name, value)
	}
	require.Equal(t, "ELDEST_TLS_KEY", connect.VariableOf("ELDEST_", "key"))
	inner := tenureEnv("inner", "inner/2", 8)
	got, _ := last(inner, "ELDEST_TLS_KEY")
	require.Equal(t, "/etc/key.pem", got)
	got, _ = last(inner, "ELDEST_KEY")
	require.Equal(t, "inner/2", got)
	require.Len(t, inner, len(env), "a variable is there twice")
}
