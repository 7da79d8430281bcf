package cgrouptest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// patience bounds the clean-up.
const patience = 20 * time.Second

// Enter moves the test's process into a control group of its own until the end of the test,
// and returns its directory. What the test starts meanwhile is in it, too, and is killed at
// the end. The test is skipped where that is not allowed.
func Enter(t *testing.T) (dir string) {
	t.Helper()
	dir, err := enter(t)
	if err != nil {
		t.Skipf("no control group can be made: %v", err)
	}
	return dir
}

// Forbid is Enter, and no control group can be made below that. Where Enter would skip the
// test none can be made anyway.
func Forbid(t *testing.T) {
	t.Helper()
	if dir, err := enter(t); err == nil {
		require.NoError(t, write(dir, "cgroup.max.descendants", "0"))
	}
}

func enter(t *testing.T) (dir string, err error) {
	before, err := job.OwnCgroup()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(before, "eldest-test-"); err != nil {
		return "", err
	}
	if _, err = os.Stat(filepath.Join(dir, "cgroup.kill")); err == nil {
		err = write(dir, "cgroup.procs", "0") // the process that writes
	}
	if err != nil {
		_ = syscall.Rmdir(dir)
		return "", err
	}
	t.Cleanup(func() {
		require.NoError(t, write(before, "cgroup.procs", "0"))
		require.NoError(t, write(dir, "cgroup.kill", "1"))
		remove(t, dir)
	})
	return dir, nil
}

// LimitProcesses makes a control group (of version 1: it is beside that of Enter) that has no
// more than the given number of processes, and returns the file to which a process writes "0"
// to be in it. At the end of the test what is in it is killed. The test is skipped where that
// is not allowed.
func LimitProcesses(t *testing.T, limit int) (join string) {
	t.Helper()
	var dir string
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) { // device, where, type, options, ...
		words := strings.Fields(line)
		if words[2] == "cgroup" && strings.Contains(","+words[3]+",", ",pids,") {
			dir, err = os.MkdirTemp(words[1], "eldest-test-")
		}
	}
	if err != nil || dir == "" {
		t.Skipf("no control group can be made that limits the number of processes: %v", err)
	}
	t.Cleanup(func() {
		require.NoError(t, write(dir, "pids.max", "0")) // nobody forks any more
		for begun := time.Now(); time.Since(begun) < patience; time.Sleep(time.Millisecond) {
			left, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			require.NoError(t, err)
			if len(left) == 0 {
				break
			}
			for word := range strings.FieldsSeq(string(left)) {
				pid, err := strconv.Atoi(word)
				require.NoError(t, err)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		remove(t, dir)
	})
	require.NoError(t, write(dir, "pids.max", strconv.Itoa(limit)))
	return filepath.Join(dir, "cgroup.procs")
}

// remove removes a control group, with those below it, once nothing in it runs any more.
func remove(t *testing.T, dir string) {
	require.Eventually(t, func() bool {
		below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
		for _, path := range below {
			_ = syscall.Rmdir(filepath.Dir(path))
		}
		return syscall.Rmdir(dir) == nil
	}, patience, time.Millisecond, dir)
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0)
}
