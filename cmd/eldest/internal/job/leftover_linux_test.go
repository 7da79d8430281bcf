package job_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cgrouptest"
)

// A control group that is left is removed by the next job: if it is ours, if nobody has it
// open any more, and if no process is in it or below it.
//
// Fails when what is left stays, and when anything else is removed.
func TestLeftoverIsRemoved(t *testing.T) {
	dir := cgrouptest.Enter(t)
	group := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(path, 0o700))
		return path
	}
	left := group("eldest-run-17")
	group("eldest-run-17/below/more")
	others := []string{group("eldest-run-"), group("eldest-run-1x"), group("eldest-runs-17"), group("other-17")}
	populated := group("eldest-run-18")
	enter(t, populated)

	waiting := startJob(t) // its program is not started yet
	require.NoError(t, (<-waiting.Run(shell("true"))).Failure())
	require.NoDirExists(t, left, "what is left stays")
	before := glob(t, dir+"/eldest-run-[0-9]*")
	require.Len(t, before, 3, "INVALID: those that are there: %v", before) // with eldest-run-1x

	next := startJob(t)
	require.NoError(t, next.Ungrouped())
	for _, path := range append(before, append(others, populated)...) {
		require.DirExists(t, path, "it is in use, or not ours")
	}
	waiting.SetDeadline(far())
	_, err := launch(waiting, shell("grep -q ^0::.*/eldest-run- /proc/self/cgroup"))
	require.NoError(t, err)
	require.NoError(t, waiting.Ungrouped(), "the group of a job that waits was removed")
	require.Zero(t, over(t, waiting).Code)
	// The second one first: it knows of the first one's keeper. The other way round this process's
	// children are all dealt with as the first one's.
	next.Close()
	waiting.Close()
	require.Len(t, glob(t, dir+"/eldest-run-[0-9]*"), 2, "the groups of jobs that have ended are left")
}

// enter starts a process in a control group; it ends with the test.
func enter(t *testing.T, group string) {
	t.Helper()
	sleeper := exec.Command("sleep", "1000")
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	procs := filepath.Join(group, "cgroup.procs")
	require.NoError(t, os.WriteFile(procs, []byte(strconv.Itoa(sleeper.Process.Pid)), 0))
}
