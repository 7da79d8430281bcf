package cgrouptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// patience bounds the clean-up.
const patience = 20 * time.Second

// T is what is used of a *testing.T.
type T interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Skipf(format string, args ...any)
}

// New makes a control group for the time of the test and returns its directory. At the end what
// runs in it is killed. The test is skipped where that is not allowed.
func New(t T) (dir string) {
	t.Helper()
	dir, err := create(t)
	if err != nil {
		t.Skipf("no control group can be made: %v", err)
	}
	return dir
}

// NewBarren is New, and no control group can be made below that. Where New would skip the test
// none can be made anyway: dir is "".
func NewBarren(t T) (dir string) {
	t.Helper()
	dir, err := create(t)
	if err != nil {
		return ""
	}
	must(t, write(dir, "cgroup.max.descendants", "0"))
	return dir
}

// In has a command start in a control group; "" is that of this process.
func In(t T, dir string) func(*exec.Cmd) {
	t.Helper()
	if dir == "" {
		return func(*exec.Cmd) {}
	}
	group, err := os.Open(dir)
	must(t, err)
	t.Cleanup(func() { _ = group.Close() })
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	}
}

// Enter moves the test's process into New until the end of the test. What the test starts
// meanwhile is in it, too.
func Enter(t T) (dir string) {
	t.Helper()
	dir = New(t)
	move(t, dir)
	return dir
}

// Forbid moves it into NewBarren.
func Forbid(t T) {
	t.Helper()
	if dir := NewBarren(t); dir != "" {
		move(t, dir)
	}
}

func move(t T, dir string) {
	t.Helper()
	must(t, write(dir, "cgroup.procs", "0")) // the process that writes
	t.Cleanup(func() { must(t, write(filepath.Dir(dir), "cgroup.procs", "0")) })
}

func create(t T) (dir string, err error) {
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
		must(t, write(dir, "cgroup.kill", "1"))
		remove(t, dir)
	})
	return dir, nil
}

// Confine makes control groups (of version 1: they are beside that of Enter) in which no more
// than the given number of processes run at a time, on a tenth of one processor, so that
// other tests can run beside them. It returns the files to which a process writes "0" to be in
// them. At the end of the test what is in them is killed. The test is skipped where that is
// not allowed.
func Confine(t T, processes int) (join []string) {
	t.Helper()
	cpu, pids := limited(t, "cpu"), limited(t, "pids")
	must(t, write(cpu, "cpu.cfs_quota_us", "10000"))
	must(t, write(pids, "pids.max", strconv.Itoa(processes)))
	t.Cleanup(func() { end(t, pids) })
	return []string{filepath.Join(pids, "cgroup.procs"), filepath.Join(cpu, "cgroup.procs")}
}

// limited makes a control group of a controller of version 1, until the end of the test.
func limited(t T, controller string) (dir string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	for line := range strings.Lines(string(mounts)) { // device, where, type, options, ...
		words := strings.Fields(line)
		if words[2] == "cgroup" && strings.Contains(","+words[3]+",", ","+controller+",") {
			dir, err = os.MkdirTemp(words[1], "eldest-test-")
		}
	}
	if err != nil || dir == "" {
		t.Skipf("no control group can be made that limits %s: %v", controller, err)
	}
	t.Cleanup(func() { remove(t, dir) })
	return dir
}

// end kills what is in a control group that limits the number of processes.
func end(t T, dir string) {
	t.Helper()
	must(t, write(dir, "pids.max", "0")) // nobody forks any more
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(time.Millisecond) {
		left, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		must(t, err)
		if len(left) == 0 {
			return
		}
		for word := range strings.FieldsSeq(string(left)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// remove removes a control group, with those below it, once nothing in it runs any more.
func remove(t T, dir string) {
	t.Helper()
	var err error
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(time.Millisecond) {
		var groups []string // each before those below it
		_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil // what is gone by now is gone
		})
		for _, path := range slices.Backward(groups) {
			err = syscall.Rmdir(path)
		}
		if err == nil {
			return
		}
	}
	t.Errorf("remove %s: %v", dir, err)
}

func must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%v", err)
	}
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0)
}
