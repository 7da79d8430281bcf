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

// An --on-win that hangs is killed, with what it has started, and no program is started.
func TestRunHookThatHangs(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	hang := strings.Join(quoted(diary.program("H", stubborn, parent)), " ")
	r := etcd.run("svc", "--on-win", hang, "--hook-timeout", "6s", "--", "sh", "-c", "echo ran")
	require.Contains(t, r.event("hook")["cause"], "too long")
	r.Exits(cli.ExitFailed)
	require.NotEmpty(t, diary.signs(), "INVALID: the hook never ran")
	diary.nobody("svc")
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
