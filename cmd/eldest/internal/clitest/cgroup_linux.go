package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// Cgroup makes a control group for the duration of the test and returns its directory. At the end the
// processes in it are killed. The test is skipped if control groups are not allowed.
func Cgroup(t testing.TB) (dir string) {
	t.Helper()
	dir, err := cgroup(t)
	if err != nil {
		t.Skipf("no control group can be made: %v", err)
	}
	return dir
}

// BarrenCgroup is Cgroup, but no control group can be made below it. If Cgroup would skip the test,
// none can be made anyway: dir is "".
func BarrenCgroup(t testing.TB) (dir string) {
	t.Helper()
	dir, err := cgroup(t)
	if err != nil {
		return ""
	}
	put(t, dir, "cgroup.max.descendants", "0")
	return dir
}

// In makes a command start in a control group; "" is that of this process.
func In(t testing.TB, dir string) func(*exec.Cmd) {
	t.Helper()
	if dir == "" {
		return func(*exec.Cmd) {}
	}
	group, err := os.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = group.Close() })
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	}
}

// Enter moves the test's process into a control group until the end of the test, with the processes
// that the test starts meanwhile. "" is that of this process.
func Enter(t testing.TB, dir string) string {
	t.Helper()
	if dir != "" {
		put(t, dir, "cgroup.procs", "0") // the process that writes
		t.Cleanup(func() { put(t, filepath.Dir(dir), "cgroup.procs", "0") })
	}
	return dir
}

func cgroup(t testing.TB) (dir string, err error) {
	own, err := job.OwnCgroup()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(own, "eldest-test-"); err != nil {
		return "", err
	}
	if _, err = os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
		_ = syscall.Rmdir(dir)
		return "", err
	}
	t.Cleanup(func() {
		put(t, dir, "cgroup.kill", "1")
		remove(t, dir)
	})
	return dir, nil
}

// remove removes a control group, with those below it, once nothing in it runs any more.
func remove(t testing.TB, dir string) {
	t.Helper()
	assert.Eventually(t, func() bool {
		var groups []string // each before those below it
		_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil // a directory that is removed meanwhile is no error
		})
		for _, path := range slices.Backward(groups) {
			_ = syscall.Rmdir(path)
		}
		return len(groups) == 0
	}, Patience, time.Millisecond, "remove %s", dir)
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	assert.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0))
}
