//go:build linux

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cgrouptest"
)

// reading returns a file's content once it ends in a line break.
func reading(t *testing.T, path string) string {
	t.Helper()
	var text string
	require.Eventually(t, func() bool {
		data, _ := os.ReadFile(path)
		text = string(data)
		return strings.HasSuffix(text, "\n")
	}, patience, 5*time.Millisecond, path)
	return text
}

func TestRunRefusesBadUsageBeforeItSendsAnything(t *testing.T) {
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:1")
	for line, reason := range map[string]string{
		"run":                                 "after --, a program",
		"run svc":                             "after --, a program",
		"run svc --":                          "after --, a program",
		"run -- true":                         "after --, a program",
		"run svc true":                        "put -- before the program: eldest run svc -- true",
		"run svc other -- true":               "one ELECTION before --, not 2",
		"run svc sh -x":                       "flags of the program go after --",
		"run a/b -- true":                     "/",
		"run svc --ttl 0s -- true":            "--ttl 0s",
		"run svc --ttl 48h -- true":           "--ttl 48h0m0s",
		"run svc --ttl 4s --grace 3s -- true": "use --ttl 6s or more, or --grace 2s or less",
		"run svc --grace -1s -- true":         "want 0s or more",
		"run svc --restart sometimes -- true": "want always, on-failure or never",
		"run svc --hook-timeout 0s --on-win true -- true":              "more than 0s",
		"run svc --hook-timeout 1s -- true":                            "no hook to bound",
		"run svc --health-every 1s -- true":                            "without --health",
		"run svc --health true --health-every 1ms -- true":             "at least 10ms",
		"run svc --on-win= -- true":                                    "--on-win is empty",
		"run svc --on-loss= -- true":                                   "--on-loss is empty",
		"run svc --health= -- true":                                    "--health is empty",
		"run svc -- /no/such/program":                                  "give the path of an executable file",
		"run svc --endpoints nonsense -- true":                         "host:port",
		"run svc --value " + strings.Repeat("x", 1<<20+1) + " -- true": "--value has 1048577 bytes",
	} {
		name := line[:min(len(line), 40)]
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runLine(t, strings.Fields(line)...)
			require.Equal(t, exitUsage, code, stderr)
			require.Contains(t, stderr, reason)
			require.Empty(t, stdout)
		})
	}
}

func TestRunGivesTheProgramItsEnvironmentAndStreams(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	t.Setenv("ELDEST_TOKEN", "stale") // of an eldest run around this one
	t.Setenv("ELDEST_KEY", "stale")
	t.Setenv("MINE", "kept \xff")
	began := time.Now()
	r := startRun(t, "svc", "--ttl", "30s", "--value", "me", "--", "sh", "-c",
		`printf '%s\n' "$ELDEST_ELECTION" "$ELDEST_KEY" "$ELDEST_TOKEN" "$ELDEST_DEADLINE" "$MINE" "$1"; echo err >&2; exec sleep 1000`, "sh", "a\xfe b")
	led := r.event("leader")
	require.Equal(t, "svc\n", r.line())
	require.Equal(t, led["key"].(string)+"\n", r.line())
	require.Equal(t, strconv.Itoa(int(led["token"].(float64)))+"\n", r.line())
	deadline, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(r.line()))
	require.NoError(t, err)
	require.True(t, deadline.After(began) && deadline.Before(time.Now().Add(30*time.Second)), deadline)
	require.Equal(t, "kept \xff\n", r.line())
	require.Equal(t, "a\xfe b\n", r.line())
	r.says("err\n")
	kv, err := etcd.client.Get(etcd.bounded(), led["key"].(string))
	require.NoError(t, err)
	require.Equal(t, "me", string(kv.Kvs[0].Value))
	r.signal(syscall.SIGTERM)
	r.exits(exitOK)
	require.Empty(t, etcd.keys())
	require.Zero(t, etcd.leases(), "a lease is left")
}

// Within the program, ELDEST_KEY is the candidate's key and no file: an eldest command
// there must not take it for one.
func TestRunLetsEldestCommandsWorkInTheProgram(t *testing.T) {
	startEtcdProcess(t, "0")
	diary := newDiary(t)
	r := startRun(t, "svc", "--", "sh", "-c", `"$0" leader svc --json 3<`+"/dev/zero"+`; exec sleep 1000`, os.Args[0])
	led := r.event("leader")
	require.Contains(t, r.line(), led["key"].(string))
	r.signal(syscall.SIGTERM)
	r.exits(exitOK)
	diary.nobody("svc")
}

func TestRunEndsAsTheProgramDoes(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	for line, c := range map[string]struct{ plain, passedOn int }{
		"exit 0":        {exitOK, 0},
		"exit 7":        {exitFailed, 7},
		"exit 2":        {exitFailed, 2},
		"kill -KILL $$": {exitFailed, 137},
		"kill -TERM $$": {exitFailed, 143},
	} {
		t.Run(line, func(t *testing.T) {
			// With a TTL of a minute, and etcd that expires nothing: what is gone was released.
			p := startRun(t, "svc", "--ttl", "60s", "--", "sh", "-c", line)
			p.event("exited")
			p.event("resigned")
			p.exits(c.plain)
			require.Empty(t, etcd.keys(), "the key was not released")
			p = startRun(t, "svc", "--ttl", "60s", "--exit-code", "--", "sh", "-c", line)
			require.EqualValues(t, c.passedOn, p.event("exited")["exit_code"])
			p.exits(c.passedOn)
			require.NotContains(t, p.errors(), "for usage", "the code is not ours")
			require.Empty(t, etcd.keys())
			require.Zero(t, etcd.leases())
		})
	}
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700)) //nolint:gosec // it is to be run
	for flag, code := range map[string]int{"--exit-code=false": exitFailed, "--exit-code": 127} {
		p := startRun(t, "svc", flag, "--", script)
		p.exits(code)
		require.Contains(t, p.errors(), "no such file")
		require.Empty(t, etcd.keys())
	}
}

// When the head of the program ends, its children are killed: leadership is released, and
// another program runs elsewhere.
func TestRunKillsWhatTheProgramLeaves(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	t.Run("control group", func(t *testing.T) {
		groups := cgrouptest.Enter(t)
		killsWhatTheProgramLeaves(t, etcd)
		require.Empty(t, glob(groups+"/eldest-run-*"))
	})
	t.Run("no control group", func(t *testing.T) {
		cgrouptest.Forbid(t)
		killsWhatTheProgramLeaves(t, etcd)
	})
}

func killsWhatTheProgramLeaves(t *testing.T, etcd *etcdProcess) {
	diary := newDiary(t)
	stays := filepath.Join(t.TempDir(), "stays")
	require.NoError(t, os.WriteFile(stays, nil, 0o600))
	script := `"$@" & while test -e ` + stays + `; do sleep 0.05; done`
	r := startRun(t, append([]string{"svc", "--ttl", "60s", "--", "sh", "-c", script, "sh"}, diary.program("A", stubborn, parent)...)...)
	diary.lives("A-away")
	require.NoError(t, os.Remove(stays))
	r.event("exited")
	end := time.Now()
	r.exits(exitOK)
	for _, s := range diary.signs() {
		require.True(t, s.at.Before(end), s)
	}
	diary.nobody("svc")
	require.Empty(t, etcd.keys())
}

func TestRunPassesSignalsOn(t *testing.T) {
	heedHangups(t)
	etcd := startEtcdProcess(t, "0")
	diary := newDiary(t)
	r := startRun(t, append([]string{"svc", "--ttl", "60s", "--grace", "20s", "--exit-code", "--"}, diary.program("A")...)...)
	r.event("started")
	diary.lives("A")
	r.signal(syscall.SIGHUP)
	diary.heard("A", syscall.SIGHUP)
	r.signal(syscall.SIGUSR1)
	diary.heard("A", syscall.SIGUSR1)
	diary.lives("A")
	r.signal(syscall.SIGINT)
	require.Equal(t, "ended by SIGINT", r.event("stopping")["cause"])
	diary.heard("A", syscall.SIGINT)
	require.EqualValues(t, 5, r.event("exited")["exit_code"])
	r.exits(5)
	require.False(t, diary.told("A", syscall.SIGTERM), "SIGINT became SIGTERM")
	require.Empty(t, etcd.keys())
	diary.nobody("svc")
}

// A signal to eldest: the program has its grace while the lease is kept, and the key goes
// when it is dead and no sooner.
func TestRunKeepsTheKeyUntilTheProgramIsDead(t *testing.T) {
	startEtcdProcess(t, "0")
	diary := newDiary(t)
	// The grace is as long as half of the TTL: without renewals it would be cut short.
	a := startRun(t, append([]string{"svc", "--ttl", "10s", "--grace", "5s", "--"}, diary.program("A", stubborn, parent)...)...)
	a.event("started")
	b := startRun(t, append([]string{"svc", "--"}, diary.program("B")...)...)
	b.event("waiting")
	diary.lives("A-away")
	told := time.Now()
	a.signal(syscall.SIGTERM)
	win := at(t, b.event("leader"))
	diary.lives("B")
	last := diary.inTurn("A", "B", win)
	require.Greater(t, last.Sub(told), 4*time.Second, "it did not have its grace")
	a.exits(exitOK)

	// The second one waits for nothing.
	c := startRun(t, append([]string{"other", "--ttl", "60s", "--grace", "30s", "--"}, diary.program("C", stubborn, parent)...)...)
	c.event("started")
	diary.lives("C-away")
	c.signal(syscall.SIGTERM)
	diary.heard("C", syscall.SIGTERM)
	c.signal(syscall.SIGINT)
	c.exits(exitOK)
	diary.nobodyOf(t, "C")

	// A grace of 0 is SIGKILL alone.
	d := startRun(t, append([]string{"third", "--grace", "0s", "--"}, diary.program("D")...)...)
	d.event("started")
	diary.lives("D")
	d.signal(syscall.SIGTERM)
	d.exits(exitOK)
	require.False(t, diary.told("D", syscall.SIGTERM))
	b.signal(syscall.SIGTERM)
	b.exits(exitOK)
	diary.nobody("svc")
}

// What was sent while it stood still is heard when it goes on: the one that ends it is not
// crowded out by the others.
func TestRunHearsWhatWasSentWhileItStoodStill(t *testing.T) {
	heedHangups(t)
	etcd := startEtcdProcess(t, "0")
	diary := newDiary(t)
	r := startRun(t, append([]string{"svc", "--ttl", "60s", "--grace", "20s", "--"}, diary.program("A")...)...)
	r.event("started")
	diary.lives("A")
	halt(t, r.cmd.Process)
	for range 10 {
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGWINCH, syscall.SIGTERM} {
			r.signal(sig)
		}
	}
	r.signal(syscall.SIGCONT)
	diary.heard("A", syscall.SIGTERM)
	require.EqualValues(t, 0, r.event("exited")["exit_code"])
	r.exits(exitOK)
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
	heedHangups(t)
	etcd := startEtcdProcess(t, "0")
	leader, _ := leading(t, "svc")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		r := startRun(t, "svc", "--restart", "always", "--on-loss", "echo loss", "--", "sh", "-c", "echo ran")
		r.event("waiting")
		r.signal(sig)
		require.Equal(t, false, r.event("resigned")["led"])
		r.exits(exitOK) // and has written nothing to stdout
		require.Len(t, etcd.standing(), 1)
	}
	r := startRun(t, "svc", "--", "sh", "-c", "echo ran")
	etcd.delete(r.event("waiting")["key"].(string))
	r.event("lost")
	r.exits(exitLost)
	leader.signal(syscall.SIGTERM)
	leader.event("resigned")
	leader.exits(exitOK)
	newDiary(t).nobody("svc")
}

// heedHangups has the processes of a test hear SIGHUP also where the tests themselves run
// under nohup: what is ignored is inherited, what is caught is not.
func heedHangups(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(heard) })
}

// childrenOfProcess lists the children of another process.
func childrenOfProcess(pid int) (children []int) {
	for _, path := range glob("/proc/" + strconv.Itoa(pid) + "/task/*/children") {
		data, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// A keeper that is killed before the win is replaced.
func TestRunReplacesAKeeperThatDiesBeforeTheWin(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	leader, _ := leading(t, "svc")
	r := startRun(t, "svc", "--", "sh", "-c", "echo ran")
	r.event("waiting")
	var keeper *os.Process
	require.Eventually(t, func() bool {
		for _, child := range childrenOfProcess(r.cmd.Process.Pid) {
			keeper = handle(t, child)
		}
		return keeper != nil
	}, patience, time.Millisecond, "no keeper")
	require.NoError(t, keeper.Kill())
	require.Eventually(t, func() bool { return keeper.Signal(syscall.Signal(0)) != nil }, patience, time.Millisecond)
	leader.signal(syscall.SIGTERM)
	leader.event("resigned")
	leader.exits(exitOK)
	require.Equal(t, "ran\n", r.line())
	r.exits(exitOK)
	require.Empty(t, etcd.keys())
}

// A keeper that stood still, and wakes up after the last deadline that it knew of, finds
// newer ones in its pipe: nothing is wrong, and the program goes on.
func TestRunKeeperThatWakesUp(t *testing.T) {
	startEtcdProcess(t, "0")
	diary := newDiary(t)
	r := startRun(t, append([]string{"svc", "--ttl", "8s", "--"}, diary.program("A")...)...)
	keeper := handle(t, parentOf(t, r.pid()))
	diary.lives("A")
	halt(t, keeper)
	diary.livesFor("A", 8500*time.Millisecond)
	require.NoError(t, keeper.Signal(syscall.SIGCONT))
	diary.livesFor("A", 500*time.Millisecond)
	require.False(t, diary.told("A", syscall.SIGTERM))
	r.signal(syscall.SIGTERM)
	diary.heard("A", syscall.SIGTERM)
	r.exits(exitOK)
	diary.nobody("svc")
}

// Both watchers killed: what is promised is the death of the program, by the kernel.
func TestRunProgramDiesWithBothWatchers(t *testing.T) {
	startEtcdProcess(t, "0")
	cgrouptest.Forbid(t) // nobody would be there to remove it
	diary := newDiary(t)
	r := startRun(t, append([]string{"svc", "--"}, diary.program("A", stubborn)...)...)
	keeper := handle(t, parentOf(t, r.pid()))
	diary.lives("A")
	halt(t, r.cmd.Process) // so that it cannot be eldest who kills
	require.NoError(t, keeper.Kill())
	diary.nobodyOf(t, "A")
	r.signal(syscall.SIGKILL)
	r.exits(-1)
	diary.nobody("svc")
}

// Service managers send SIGTERM to all processes of a service: that ends it in good order.
func TestRunEndsWhenAllOfItAreTold(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	diary := newDiary(t)
	r := startRun(t, append([]string{"svc", "--ttl", "60s", "--"}, diary.program("A")...)...)
	pid := r.pid()
	keeper := handle(t, parentOf(t, pid))
	diary.lives("A")
	for range 3 {
		require.NoError(t, keeper.Signal(syscall.SIGTERM))
	}
	diary.lives("A")
	require.NoError(t, keeper.Signal(syscall.SIGTERM))
	r.signal(syscall.SIGTERM)
	r.event("exited")
	r.exits(exitOK)
	require.Empty(t, etcd.keys())
	diary.nobody("svc")
}

// Nobody reads the events, or nobody can any more: the program goes on, and ends in good
// order. The pipe is full before the first event, so that each of them is one too many.
func TestRunGoesOnWhenNobodyReadsItsEvents(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	for name, prepare := range map[string]func(t *testing.T, ours, theirs *os.File){
		"full": func(t *testing.T, _, theirs *os.File) {
			require.NoError(t, theirs.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
			_, err := theirs.Write(make([]byte, 1<<20))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "INVALID: the pipe is not full")
		},
		"closed": func(t *testing.T, ours, _ *os.File) { require.NoError(t, ours.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			diary := newDiary(t)
			ours, theirs, err := os.Pipe()
			require.NoError(t, err)
			defer func() { _, _ = ours.Close(), theirs.Close() }()
			prepare(t, ours, theirs)
			parent, life, err := os.Pipe()
			require.NoError(t, err)
			defer func() { _, _ = parent.Close(), life.Close() }()
			cmd := exec.Command(os.Args[0], append([]string{"run", "silent", "--ttl", "6s", "--grace", "500ms", "--"}, diary.program("A")...)...)
			cmd.Env = append(os.Environ(), asCommand+"=1")
			cmd.Stderr, cmd.ExtraFiles = theirs, []*os.File{parent}
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			diary.livesFor("A", 6500*time.Millisecond) // more than the TTL
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			err, ok := awaited(ended)
			require.True(t, ok, "it does not end")
			require.NoError(t, err)
			require.Empty(t, etcd.keys())
			diary.nobody("silent")
		})
	}
}

// The keeper's command is of no use by itself, and says so.
func TestRunKeeperIsForEldestAlone(t *testing.T) {
	cmd := exec.Command(os.Args[0], keeperCommand, "svc")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
	require.Contains(t, string(out), "started by it and by nobody else")
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
	require.Equal(t, "ELDEST_KEY", variableOf("ELDEST_", "key"))
	require.Equal(t, "ETCDCTL_KEY", variableOf("ETCDCTL_", "key"))
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
	require.Equal(t, "ELDEST_TLS_KEY", variableOf("ELDEST_", "key"))
	inner := tenureEnv("inner", "inner/2", 8)
	got, _ := last(inner, "ELDEST_TLS_KEY")
	require.Equal(t, "/etc/key.pem", got)
	got, _ = last(inner, "ELDEST_KEY")
	require.Equal(t, "inner/2", got)
	require.Len(t, inner, len(env), "a variable is there twice")
}
