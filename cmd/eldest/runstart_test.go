//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

// stoppedKeeper waits for a run that stands behind somebody else, and stops its keeper.
func stoppedKeeper(t *testing.T, r *running) (keeper *os.Process) {
	t.Helper()
	r.event("waiting")
	require.Eventually(t, func() bool {
		keepers := clitest.Children(r.Cmd.Process.Pid)
		if len(keepers) == 1 {
			keeper = handle(t, keepers[0])
		}
		return keeper != nil
	}, patience, time.Millisecond, "no keeper")
	clitest.Halt(t, keeper)
	return keeper
}

// A keeper that stands still when the candidate wins starts nothing. Whoever takes the key
// away leads; and a keeper that goes on after that must not find the program's start in
// its orders.
//
// Fails when nobody looks at anything else while the program is being started.
func TestRunStartsNothingWhenItNoLongerLeads(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	leader, _ := etcd.leading("svc")
	ran := filepath.Join(t.TempDir(), "ran")
	r := etcd.run("svc", "--ttl", "60s", "--", "sh", "-c", "echo ran > "+ran+"; sleep 1000")
	keeper := stoppedKeeper(t, r)
	resigns(leader)
	led := r.event("leader")
	_, err := etcd.client.Delete(t.Context(), led["key"].(string))
	require.NoError(t, err)
	r.event("lost")
	_ = keeper.Signal(syscall.SIGCONT) // it may be gone by now
	r.Exits(cli.ExitLost)
	require.NoFileExists(t, ran)
	newDiary(t).nobody("svc")
}

// A keeper that stands still when the program ends does not keep its leadership for ever.
//
// Fails when nobody but the keeper looks at the program.
func TestRunKeeperThatDoesNotNoticeTheEnd(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	diary := newDiary(t)
	r := etcd.run(append([]string{"svc", "--ttl", "60s", "--"}, diary.program("A", stubborn, parent)...)...)
	program := handle(t, r.pid())
	keeper := handle(t, clitest.Parent(t, program.Pid))
	diary.lives("A-away")
	clitest.Halt(t, keeper)
	require.NoError(t, program.Kill())
	require.EqualValues(t, 137, r.event("exited")["exit_code"])
	require.Contains(t, r.event("resigned")["cause"], "it did not listen, and was killed")
	r.Exits(cli.ExitFailed)
	require.Empty(t, etcd.keys())
	diary.nobody("svc")
}

// A signal ends a leader whose program is still to be started.
func TestRunEndsWhileTheProgramIsStarted(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	leader, _ := etcd.leading("svc")
	r := etcd.run("svc", "--ttl", "60s", "--", "sh", "-c", "sleep 1000")
	stoppedKeeper(t, r)
	resigns(leader)
	r.event("leader")
	r.Signal(syscall.SIGTERM)
	r.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
	newDiary(t).nobody("svc")
}

// A check of health that fills the pipe of a stopped keeper holds up no kill. The lease ends
// sooner than the keeper is given up for not reading.
func TestRunKillsBesideAnOrderThatIsStuck(t *testing.T) {
	etcd := borrowed(t) // and no other test beside this one: such a lease is soon lost
	diary := newDiary(t)
	for _, name := range []string{"A", "B", "C", "D"} {
		etcd = etcd.with("BALLAST_" + name + "=" + strings.Repeat(name, 100_000))
	}
	a := etcd.run(append([]string{"svc", "--ttl", "3s", "--health", "true", "--health-every", "400ms", "--"}, diary.program("A", stubborn, parent)...)...)
	keeper := handle(t, clitest.Parent(t, a.pid()))
	diary.lives("A")
	b := etcd.run(append([]string{"svc", "--"}, diary.program("B")...)...)
	b.event("waiting")
	clitest.Halt(t, keeper)
	win := timeOf(t, b.event("leader"))
	diary.lives("B")
	diary.inTurn("A", "B", win)
	a.Exits(cli.ExitLost)
	b.Signal(os.Interrupt)
	b.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
	diary.nobody("svc")
}
