//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// tree is a program that starts chains of processes: each leaves its session, starts the next one, and
// ends. They run as another user, for 1,000 steps or until the file is removed. $1 is the file: each
// process writes one byte to it, and holds a lock on it, which is free when none of them is left.
const tree = `
exec 9>>"$1" >/dev/null 2>&1
flock -s 9
chain='[ -e "$2" -a $3 -gt 0 ] || exit; printf . >&9; sleep 0.1; setsid sh -c "$1" sh "$1" "$2" $(($3 - 1)) &'
for i in 1 2 3 4; do
	nice setpriv --reuid 65534 sh -c "$chain" sh "$chain" "$1" 1000 &
done
while [ ! -e "$1.end" ]; do sleep 0.05; done`

// forest is a tree as the program of "eldest run".
type forest struct {
	t    *testing.T
	file *os.File
}

func newForest(t *testing.T) forest {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root has processes run as another user")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // the other user looks for the file
	file, err := os.Create(dir + "/chains")
	require.NoError(t, err)
	f := forest{t, file}
	t.Cleanup(func() {
		_ = os.Remove(file.Name())
		require.Eventually(t, f.dead, patience, 10*time.Millisecond)
		_ = file.Close()
	})
	return f
}

// run starts "eldest run" with the tree, without the right to send signals to processes of other users.
func (f forest) run(e *etcd, args ...string) *clitest.Process {
	f.t.Helper()
	attr := e.attr
	e = e.changed(func(cmd *exec.Cmd) {
		attr(cmd)
		cmd.Path = "/usr/bin/setpriv"
		cmd.Args = append([]string{"setpriv", "--bounding-set", "-kill"}, cmd.Args...)
	})
	return e.run(append(args, "--", "sh", "-c", tree, "sh", f.file.Name())...)
}

// grows waits until the processes of the tree have started others.
func (f forest) grows() {
	f.t.Helper()
	length := func() int64 {
		info, err := f.file.Stat()
		require.NoError(f.t, err)
		return info.Size()
	}
	begun := length()
	require.Eventually(f.t, func() bool { return length() > begun+20 }, patience, 10*time.Millisecond, "INVALID: nothing forks")
}

// dead reports whether no process of the tree is left.
func (f forest) dead() bool {
	return syscall.Flock(int(f.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// end has the program end.
func (f forest) end() { require.NoError(f.t, os.WriteFile(f.file.Name()+".end", nil, 0o600)) }

// Eldest stops trying to kill what it cannot kill. Those processes may act as if they led: nothing is
// removed that lets another candidate lead, and --on-loss is not run.
//
// Fails when eldest searches for them without end, or releases the key.
func TestRunGivesUpOnWhatItCannotKill(t *testing.T) {
	t.Parallel()
	const limit = "2s" // for the keeper, and again for eldest
	etcd := borrowed(t).changed(clitest.In(t, clitest.BarrenCgroup(t))).with(givesUp + "=" + limit)
	f := newForest(t)
	after := filepath.Join(t.TempDir(), "after")
	r := f.run(etcd, "svc", "--ttl", "10m", "--command-timeout", "1s", "--restart", "always", "--on-loss", "touch "+after)
	require.Contains(t, r.Told("notice")["text"], "processes that go on forking may not all be killed")
	r.Told("started")
	f.grows()
	f.end()
	const left = "not all processes of the program could be killed: "
	require.Contains(t, r.Told("resigned")["cause"], left)
	require.Contains(t, r.Told("failed")["cause"], left)
	r.Exits(cli.ExitFailed)
	require.False(t, f.dead(), "INVALID: it was killed")
	require.Len(t, etcd.candidates(), 1, "the key is gone, and the tree lives")
	require.Contains(t, r.Errors(), "etcd did not confirm that the key is deleted")
	require.NoFileExists(t, after)
	require.Equal(t, 1, strings.Count(r.Errors(), "may not all be killed"))
}

// A program that forks without end dies with its leader, and nothing of it is left. Here eldest has
// no permission to kill its processes one by one: whether that finds all of them is chance.
//
// Fails when the program has no control group, or when the process that kills does not use it.
func TestRunRegression55ForkingTree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(r *clitest.Process, f forest, keeper *os.Process)
		code int
	}{
		"eldest killed": {func(r *clitest.Process, _ forest, _ *os.Process) { r.Signal(syscall.SIGKILL) }, -1},
		"eldest stopped": {func(r *clitest.Process, f forest, _ *os.Process) {
			clitest.Halt(r.T, r.Process)
			require.Eventually(r.T, f.dead, patience, 10*time.Millisecond, "it lives on after the deadline")
			r.Signal(syscall.SIGCONT)
		}, cli.ExitLost},
		"keeper killed": {func(_ *clitest.Process, f forest, keeper *os.Process) { require.NoError(f.t, keeper.Kill()) }, cli.ExitFailed},
		"keeper stopped": {func(r *clitest.Process, f forest, keeper *os.Process) {
			clitest.Halt(r.T, keeper)
			r.Signal(syscall.SIGTERM)
			r.Told("exited")
		}, cli.ExitOK},
		"program ends": {func(_ *clitest.Process, f forest, _ *os.Process) { f.end() }, cli.ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			groups := clitest.Cgroup(t)
			etcd := borrowed(t).changed(clitest.In(t, groups))
			f := newForest(t)
			r := f.run(etcd, "svc", "--ttl", "6s")
			_, keeper := program(r)
			f.grows()
			require.Len(t, glob(groups+"/eldest-run-*"), 1, "INVALID: no control group")
			c.end(r, f, keeper)
			released := c.code == cli.ExitOK || c.code == cli.ExitFailed
			if released {
				r.Told("resigned")
				require.True(t, f.dead(), "the tree lives, and the key may go")
			}
			require.Eventually(t, f.dead, patience, 10*time.Millisecond, "it lives on")
			r.Exits(c.code)
			noProcess(t, mark(t), keeperCommand)
			require.Empty(t, glob(groups+"/eldest-run-*"), "a control group is left")
			if released {
				require.Empty(t, etcd.candidates(), "the key is left")
			}
		})
	}
}
