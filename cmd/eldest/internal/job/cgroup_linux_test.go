package job_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cgrouptest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// Program and hooks are in the control group from their first instruction on, and it is
// removed in the end, with those that the program has made below it.
func TestCgroup(t *testing.T) {
	dir := cgrouptest.Enter(t)
	own, err := job.OwnCgroup()
	require.NoError(t, err)
	require.Equal(t, dir, own)
	for name, end := range map[string]func(j *job.Job, keeper int){
		"closed":         func(j *job.Job, _ int) { j.Close() },
		"killed":         func(j *job.Job, _ int) { j.Kill(patience) },
		"keeper killed":  func(_ *job.Job, keeper int) { _ = syscall.Kill(keeper, syscall.SIGKILL) },
		"keeper stopped": func(j *job.Job, keeper int) { halt(t, keeper); j.Kill(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			j := startJob(t)
			path := filepath.Join(t.TempDir(), "pids")
			require.NoError(t, (<-j.Run(shell("grep -q ^0::.*/eldest-run- /proc/self/cgroup"))).Failure(), "a hook is not in it")
			j.SetDeadline(far())
			below := dir + "/eldest-run-*"
			pid, err := launch(j, shell(`for d in `+below+`; do mkdir $d/below; echo 0 > $d/below/cgroup.procs; done; echo $$ > `+path+`; sleep 1000`))
			require.NoError(t, err)
			require.NoError(t, j.Ungrouped())
			running(t, path, 1)
			require.Len(t, glob(t, below+"/below"), 1, "INVALID: the program cannot make a group")
			end(j, clitest.Parent(t, pid))
			over(t, j)
			j.Close()
			require.NoError(t, j.Left())
			require.Empty(t, glob(t, below))
		})
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}

// A group in which no process can be started is left out, and that is said.
func TestCgroupThatCannotBeUsed(t *testing.T) {
	dir := cgrouptest.Enter(t)
	j := startJob(t)
	<-j.Run(shell("true")) // it is open by now
	for _, group := range glob(t, dir+"/eldest-run-*") {
		require.NoError(t, syscall.Rmdir(group))
	}
	j.SetDeadline(far())
	_, err := launch(j, shell("exit 3"))
	require.NoError(t, err)
	require.Error(t, j.Ungrouped())
	require.Equal(t, 3, over(t, j).Code)
}

func TestFindCgroup(t *testing.T) {
	const v1 = "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
	for name, c := range map[string]struct{ groups, mounts, want, reason string }{
		"the only one":      {"0::/user.slice/a b\n", "38 31 0:37 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/user.slice/a b", ""},
		"beside version 1":  {"8:pids:/x\n0::/\n", v1 + "41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 none rw\n", "/sys/fs/cgroup/unified", ""},
		"a part is mounted": {"0::/pod/one\n", "38 31 0:37 /other /a rw - cgroup2 x rw\n38 31 0:37 /pod /b\\040c rw - cgroup2 x rw\n", "/b c/one", ""},
		"outside":           {"0::/../one\n", "38 31 0:37 / /a rw - cgroup2 x rw\n", "", "control group /../one is not mounted"},
		"version 1 alone":   {"8:pids:/x\n", v1, "", "no control groups of version 2"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := job.FindCgroup(c.groups, c.mounts)
			if c.reason != "" {
				require.ErrorContains(t, err, c.reason)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// halt stops a process and waits until it has stopped.
func halt(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	clitest.Halt(t, p)
}

// A keeper that finds the program's start and the kill in its pipe, both of them, starts
// nothing.
//
// Fails when it obeys one order after the other.
func TestKeeperStartsNothingThatIsToBeKilled(t *testing.T) {
	j := startJob(t)
	j.SetDeadline(far())
	keeper := clitest.Parent(t, hookPid(t, j))
	halt(t, keeper)
	before := j.Unread(t)
	started := j.Launch(shell("sleep 1000"))
	require.Eventually(t, func() bool { return j.Unread(t) > before }, patience, time.Millisecond)
	before = j.Unread(t)
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		j.Kill(patience)
	}()
	require.Eventually(t, func() bool { return j.Unread(t) > before }, patience, time.Millisecond)
	require.NoError(t, syscall.Kill(keeper, syscall.SIGCONT))
	require.ErrorContains(t, <-started, "the keeper's work is done", "it was started, and killed")
	<-killed
}

// Kill reaches the program's process group without a keeper and without a list of processes,
// which cannot be read for want of a file descriptor.
//
// Fails when it kills only what it finds in lists.
func TestKillReachesTheProcessGroup(t *testing.T) {
	cgrouptest.Forbid(t)
	path := filepath.Join(t.TempDir(), "pids")
	j := startJob(t)
	j.SetDeadline(far())
	pid, err := launch(j, shell(`sh -c 'echo $$ >> `+path+`; sleep 1000; true' & echo $$ >> `+path+`; sleep 1000; true`))
	require.NoError(t, err)
	var ends []unix.PollFd
	for _, pid := range running(t, path, 2) {
		fd, err := unix.PidfdOpen(pid, 0)
		require.NoError(t, err)
		defer func() { _ = unix.Close(fd) }()
		ends = append(ends, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	keeper := clitest.Parent(t, pid)
	halt(t, keeper)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: limit.Max})) // one is what poll needs
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		j.Kill(patience)
	}()
	for i := range ends {
		for begun := time.Now(); ends[i].Revents == 0 && time.Since(begun) < patience/4; {
			_, _ = unix.Poll(ends[i:i+1], 100)
		}
	}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	require.NoError(t, syscall.Kill(keeper, syscall.SIGCONT))
	<-killed
	for _, end := range ends {
		require.NotZero(t, end.Revents, "the process group was left alone")
	}
}
