//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// log is a shell command that appends a line to a file.
func logTo(path, words string) string { return `echo "` + words + `" >> ` + path }

func TestRunHooks(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	path := filepath.Join(t.TempDir(), "log")
	r := startRun(t, "svc", "--ttl", "60s",
		"--on-win", logTo(path, `win $ELDEST_ELECTION $ELDEST_KEY $ELDEST_TOKEN ${ELDEST_DEADLINE:+deadline}`),
		"--on-loss", logTo(path, `loss $ELDEST_ELECTION $ELDEST_KEY $ELDEST_TOKEN ${ELDEST_DEADLINE:-none} $ELDEST_EXIT_CODE $ELDEST_CAUSE`)+`; "`+os.Args[0]+`" leader svc 3</dev/zero >/dev/null; echo "code $?" >> `+path,
		"--", "sh", "-c", logTo(path, "ran")+"; exit 3")
	led := r.event("leader")
	require.Equal(t, "on-win", r.event("hook")["hook"])
	r.event("exited")
	r.event("resigned")
	require.Equal(t, "on-loss", r.event("hook")["hook"])
	r.exits(exitFailed)
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
	etcd := startEtcdProcess(t, "0")
	diary := newDiary(t)
	path := filepath.Join(t.TempDir(), "log")
	r := startRun(t, "svc", "--on-win", "exit 9", "--on-loss", logTo(path, "$ELDEST_CAUSE/${ELDEST_EXIT_CODE-unset}"), "--", "sh", "-c", "echo ran")
	require.Equal(t, "exit code 9", r.event("hook")["cause"])
	r.event("resigned")
	r.exits(exitFailed)
	require.Contains(t, r.errors(), "--on-win: exit code 9")
	require.Equal(t, "--on-win: exit code 9/unset\n", reading(t, path))

	hang := strings.Join(quoted(diary.program("H", stubborn, parent)), " ")
	r = startRun(t, "svc", "--on-win", hang, "--hook-timeout", "6s", "--", "sh", "-c", "echo ran")
	require.Contains(t, r.event("hook")["cause"], "too long")
	r.exits(exitFailed)
	require.NotEmpty(t, diary.signs(), "INVALID: the hook never ran")
	diary.nobody("svc")

	r = startRun(t, "svc", "--on-loss", "exit 1", "--", "true")
	require.Equal(t, "exit code 1", r.event("hook")["cause"])
	r.exits(exitOK)
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
	etcd := startEtcdProcess(t, "0")
	for name, c := range map[string]struct {
		end  func(*running, object)
		code int
	}{
		"key deleted":   {func(_ *running, o object) { etcd.delete(o["key"].(string)) }, exitLost},
		"eldest killed": {func(r *running, _ object) { r.signal(syscall.SIGKILL) }, -1},
		"eldest told":   {func(r *running, _ object) { r.signal(syscall.SIGTERM) }, exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			diary := newDiary(t)
			election := "hook " + name
			r := startRun(t, election, "--ttl", "60s", "--hook-timeout", "1h",
				"--on-win", strings.Join(quoted(diary.program("H", stubborn, parent)), " "), "--", "sh", "-c", "echo ran")
			led := r.event("leader")
			diary.lives("H-away")
			c.end(r, led)
			r.exits(c.code)
			diary.nobody(election)
		})
	}
}

func TestRunStandsAgain(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
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
			r := startRun(t, "svc", "--restart", c.restart, "--", "sh", "-c", c.program)
			first := r.event("leader")
			r.event("exited")
			if !c.again {
				r.event("resigned")
				r.over()
				require.NotContains(t, r.errors(), "restarting")
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
			r.signal(syscall.SIGTERM)
			r.exits(exitOK)
			require.Empty(t, etcd.keys())
			require.Zero(t, etcd.leases())
		})
	}
	// Leadership that was lost is a failure, too; a program starts once per tenure.
	diary := newDiary(t)
	r := startRun(t, append([]string{"svc", "--restart", "on-failure", "--"}, diary.program("A")...)...)
	led := r.event("leader")
	diary.lives("A")
	etcd.delete(led["key"].(string))
	r.event("lost")
	require.Greater(t, r.event("leader")["token"], led["token"])
	diary.lives("A")
	r.signal(syscall.SIGTERM)
	r.exits(exitOK)
	diary.nobody("svc")
}

// Regression 36: the program is stuck while network and eldest are fine.
//
// Fails when renewals do not ask for the program's health.
func TestRunRegression36StuckProgram(t *testing.T) {
	startEtcdProcess(t, "0")
	diary := newDiary(t)
	well := filepath.Join(t.TempDir(), "well")
	require.NoError(t, os.WriteFile(well, nil, 0o600))
	a := startRun(t, append([]string{"svc", "--ttl", "5s", "--grace", "1s", "--health", "test -e " + well + " && kill -0 $ELDEST_PID && test -n $ELDEST_TOKEN", "--health-every", "1s", "--"},
		diary.program("A", stubborn, parent)...)...)
	a.event("started")
	b := startRun(t, append([]string{"svc", "--ttl", "4s", "--health", "sleep 1000", "--health-every", "1s", "--"}, diary.program("B")...)...)
	b.event("waiting")
	// Longer than it takes to lose the lease: it is renewed while the program is well.
	diary.livesFor("A-away", 10*time.Second)
	require.NotContains(t, a.errors(), `"lost"`)
	for _, o := range objects(t, a.errors()) {
		if o["event"] == "unhealthy" { // on a busy machine a check may take too long; none fails
			require.Contains(t, o["cause"], "too long")
		}
	}
	require.NotContains(t, b.errors(), "unhealthy", "who waits has nobody to ask")

	require.NoError(t, os.Remove(well))
	require.NotEmpty(t, a.event("unhealthy")["cause"])
	win := at(t, b.event("leader"))
	diary.lives("B")
	diary.inTurn("A", "B", win)
	a.exits(exitLost)
	require.Contains(t, a.errors(), "sign of life")
	require.True(t, diary.told("A", syscall.SIGTERM))

	// A check that hangs is no success, and is killed.
	require.Contains(t, b.event("unhealthy")["cause"], "too long")
	b.exits(exitLost)
	diary.nobody("svc")
}

// One failure alone costs nothing.
func TestRunHealthRecovers(t *testing.T) {
	startEtcdProcess(t, "0")
	diary := newDiary(t)
	well := filepath.Join(t.TempDir(), "well")
	r := startRun(t, append([]string{"svc", "--ttl", "10s", "--health", "test -e " + well, "--health-every", "1s", "--"}, diary.program("A")...)...)
	r.event("unhealthy")
	require.NoError(t, os.WriteFile(well, nil, 0o600))
	r.event("healthy")
	diary.lives("A")
	r.signal(syscall.SIGTERM)
	r.exits(exitOK)
	require.NotContains(t, r.errors(), `"lost"`)
	diary.nobody("svc")
}
