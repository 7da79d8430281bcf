//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

// log is a shell command that appends a line to a file.
func logTo(path, words string) string { return `echo "` + words + `" >> ` + path }

func TestRunHooks(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	path := filepath.Join(t.TempDir(), "log")
	r := etcd.run("svc", "--ttl", "60s",
		"--on-win", logTo(path, `win $ELDEST_ELECTION $ELDEST_KEY $ELDEST_TOKEN ${ELDEST_DEADLINE:+deadline}`),
		"--on-loss", logTo(path, `loss $ELDEST_ELECTION $ELDEST_KEY $ELDEST_TOKEN ${ELDEST_DEADLINE:-none} $ELDEST_EXIT_CODE $ELDEST_CAUSE`)+`; eldest leader svc >/dev/null; echo "code $?" >> `+path,
		"--", "sh", "-c", logTo(path, "ran")+"; exit 3")
	led := r.event("leader")
	require.Equal(t, "on-win", r.event("hook")["hook"])
	r.event("exited")
	r.event("resigned")
	require.Equal(t, "on-loss", r.event("hook")["hook"])
	r.Exits(cli.ExitFailed)
	who := "svc " + led["key"].(string) + " " + itoa(led["token"])
	require.Equal(t, "win "+who+" deadline\nran\nloss "+who+" none 3 the program ended: exit code 3\ncode 4\n", reading(t, path),
		"--on-loss runs after the release: nobody leads then")
	require.Empty(t, etcd.keys())
}

func itoa(number any) string {
	return strings.TrimSuffix(strings.TrimSpace(jsonLine(number)), "\n")
}

// A failing --on-win is the end of the tenure: no program, and --on-loss. One that hangs is
// killed, with what it has started. A failing --on-loss changes nothing.
func TestRunHooksThatFail(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	path := filepath.Join(t.TempDir(), "log")
	r := etcd.run("svc", "--on-win", "exit 9", "--on-loss", logTo(path, "$ELDEST_CAUSE/${ELDEST_EXIT_CODE-unset}"), "--", "sh", "-c", "echo ran")
	require.Equal(t, "exit code 9", r.event("hook")["cause"])
	r.event("resigned")
	r.Exits(cli.ExitFailed)
	require.Contains(t, r.Errors(), "--on-win: exit code 9")
	require.Equal(t, "--on-win: exit code 9/unset\n", reading(t, path))

	hang := strings.Join(quoted(diary.program("H", stubborn, parent)), " ")
	r = etcd.run("svc", "--on-win", hang, "--hook-timeout", "6s", "--", "sh", "-c", "echo ran")
	require.Contains(t, r.event("hook")["cause"], "too long")
	r.Exits(cli.ExitFailed)
	require.NotEmpty(t, diary.signs(), "INVALID: the hook never ran")
	diary.nobody("svc")

	r = etcd.run("svc", "--on-loss", "exit 1", "--", "true")
	require.Equal(t, "exit code 1", r.event("hook")["cause"])
	r.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
}

func quoted(words []string) []string {
	var all []string
	for _, w := range words {
		all = append(all, "'"+w+"'")
	}
	return all
}

// The hook at the win dies with leadership, as the program does; and with eldest.
func TestRunHookDiesInTime(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	for name, c := range map[string]struct {
		end  func(*running, object)
		code int
	}{
		"key deleted":   {func(_ *running, o object) { etcd.delete(o["key"].(string)) }, cli.ExitLost},
		"eldest killed": {func(r *running, _ object) { r.Signal(syscall.SIGKILL) }, -1},
		"eldest told":   {func(r *running, _ object) { r.Signal(syscall.SIGTERM) }, cli.ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := etcd.of(t)
			diary := newDiary(t)
			election := "hook " + name
			r := etcd.run(election, "--ttl", "60s", "--hook-timeout", "1h",
				"--on-win", strings.Join(quoted(diary.program("H", stubborn, parent)), " "), "--", "sh", "-c", "echo ran")
			led := r.event("leader")
			diary.lives("H-away")
			c.end(r, led)
			r.Exits(c.code)
			diary.nobody(election)
		})
	}
}

func TestRunStandsAgain(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	for _, c := range []struct {
		restart, program string
		again            bool
	}{
		{restartAlways, "exit 0", true},
		{restartAlways, "exit 4", true},
		{restartOnFailure, "exit 0", false},
		{restartOnFailure, "exit 4", true},
		{restartOnFailure, "kill -KILL $$", true},
		{restartNever, "exit 4", false},
	} {
		t.Run(c.restart+" "+c.program, func(t *testing.T) {
			t.Parallel()
			etcd := borrowed(t)
			r := etcd.run("svc", "--restart", c.restart, "--", "sh", "-c", c.program)
			first := r.event("leader")
			r.event("exited")
			if !c.again {
				r.event("resigned")
				r.Over()
				require.NotContains(t, r.Errors(), "restarting")
				return
			}
			pause := r.event("restarting")
			require.Positive(t, pause["in_ms"])
			require.Contains(t, pause["cause"], "the program ended: ")
			require.NotContains(t, pause, "key", "there is none")
			second := r.event("leader")
			require.Greater(t, second["token"], first["token"])
			require.NotEqual(t, first["key"], second["key"])
			r.event("restarting")
			r.Signal(syscall.SIGTERM)
			r.Exits(cli.ExitOK)
			require.Empty(t, etcd.keys())
			require.Zero(t, etcd.leases())
		})
	}
	// Leadership that was lost is a failure, too; a program starts once per tenure.
	diary := newDiary(t)
	r := etcd.run(append([]string{"svc", "--restart", "on-failure", "--"}, diary.program("A")...)...)
	led := r.event("leader")
	diary.lives("A")
	etcd.delete(led["key"].(string))
	r.event("lost")
	require.Greater(t, r.event("leader")["token"], led["token"])
	diary.lives("A")
	r.Signal(syscall.SIGTERM)
	r.Exits(cli.ExitOK)
	diary.nobody("svc")
}

// Regression 36: the program is stuck while network and eldest are fine.
//
// Fails when renewals do not ask for the program's health.
func TestRunRegression36StuckProgram(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	well := filepath.Join(t.TempDir(), "well")
	require.NoError(t, os.WriteFile(well, nil, 0o600))
	a := etcd.run(append([]string{"svc", "--ttl", "5s", "--grace", "1s", "--health", "test -e " + well + " && kill -0 $ELDEST_PID && test -n $ELDEST_TOKEN", "--health-every", "1s", "--"},
		diary.program("A", stubborn, parent)...)...)
	a.event("started")
	b := etcd.run(append([]string{"svc", "--ttl", "4s", "--health", "sleep 1000", "--health-every", "1s", "--"}, diary.program("B")...)...)
	b.event("waiting")
	// Longer than it takes to lose the lease: it is renewed while the program is well.
	diary.livesFor("A-away", 10*time.Second)
	require.NotContains(t, a.Errors(), `"lost"`)
	for _, o := range objects(t, a.Errors()) {
		if o["event"] == "unhealthy" { // on a busy machine a check may take too long; none fails
			require.Contains(t, o["cause"], "too long")
		}
	}
	require.NotContains(t, b.Errors(), "unhealthy", "who waits has nobody to ask")

	require.NoError(t, os.Remove(well))
	require.NotEmpty(t, a.event("unhealthy")["cause"])
	win := timeOf(t, b.event("leader"))
	diary.lives("B")
	diary.inTurn("A", "B", win)
	a.Exits(cli.ExitLost)
	require.Contains(t, a.Errors(), "sign of life")
	require.True(t, diary.told("A", syscall.SIGTERM))

	// A check that hangs is no success, and is killed.
	require.Contains(t, b.event("unhealthy")["cause"], "too long")
	b.Exits(cli.ExitLost)
	diary.nobody("svc")
}

// One failure alone costs nothing.
func TestRunHealthRecovers(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	well := filepath.Join(t.TempDir(), "well")
	r := etcd.run(append([]string{"svc", "--ttl", "10s", "--health", "test -e " + well, "--health-every", "1s", "--"}, diary.program("A")...)...)
	r.event("unhealthy")
	require.NoError(t, os.WriteFile(well, nil, 0o600))
	r.event("healthy")
	diary.lives("A")
	r.Signal(syscall.SIGTERM)
	r.Exits(cli.ExitOK)
	require.NotContains(t, r.Errors(), `"lost"`)
	diary.nobody("svc")
}
