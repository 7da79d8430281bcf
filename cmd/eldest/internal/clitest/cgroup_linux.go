package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// Confine makes control groups of version 1, which exist beside that of Enter. No more than the given
// number of processes run in them at a time, on a tenth of one processor, so that other tests can run
// beside them. It returns the files to which a process writes "0" to enter them. At the end of the
// test the processes in them are killed. The test is skipped if that is not allowed.
func Confine(t testing.TB, processes int) (join []string) {
	t.Helper()
	cpu, pids := limited(t, "cpu"), limited(t, "pids")
	put(t, cpu, "cpu.cfs_quota_us", "10000")
	put(t, pids, "pids.max", strconv.Itoa(processes))
	join = []string{filepath.Join(pids, "cgroup.procs"), filepath.Join(cpu, "cgroup.procs")}
	t.Cleanup(func() {
		put(t, pids, "pids.max", "0") // no process can fork any more
		assert.Eventually(t, func() bool {
			left := Confined(t, join)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return len(left) == 0
		}, Patience, time.Millisecond)
	})
	return join
}

// Confined returns the processes in the control groups of Confine.
func Confined(t testing.TB, join []string) (pids []int) {
	left, err := os.ReadFile(join[0])
	assert.NoError(t, err)
	for word := range strings.FieldsSeq(string(left)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// limited makes a control group of a controller of version 1, until the end of the test.
func limited(t testing.TB, controller string) (dir string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) { // device, where, type, options, ...
		words := strings.Fields(line)
		if words[2] == "cgroup" && slices.Contains(strings.Split(words[3], ","), controller) {
			dir, err = os.MkdirTemp(words[1], "eldest-test-")
		}
	}
	if err != nil || dir == "" {
		t.Skipf("no control group can be made that limits %s: %v", controller, err)
	}
	t.Cleanup(func() { remove(t, dir) })
	return dir
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
