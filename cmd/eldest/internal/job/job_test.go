//go:build linux

package job_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cgrouptest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

const patience = 20 * time.Second

// TestMain is the keeper, too: this binary is what Start starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "keep" {
		if err := job.Keep(farewell); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "own" {
		own(os.Args[2], os.Args[3])
	}
	goleak.VerifyTestMain(m)
}

// farewell writes to a file whether the process whose ID is in another one has ended.
func farewell(with []byte) func() error {
	return func() error {
		var pid int
		said := "dead"
		text, err := os.ReadFile(string(with) + ".pid")
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			return err
		}
		// One that has ended and was not waited for yet has the state Z.
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z ") {
			said = "alive"
		}
		return os.WriteFile(string(with), []byte(said), 0o600)
	}
}

func startJob(t *testing.T) *job.Job {
	t.Helper()
	j, err := job.Start([]string{"job.test", "keep"}, nil, os.Stdout, os.Stderr)
	require.NoError(t, err)
	t.Cleanup(j.Close)
	return j
}

// far is a deadline that does not come.
func far() job.Deadline {
	return job.Deadline{Term: job.Now() + time.Hour, Kill: job.Now() + time.Hour}
}

func shell(text string) job.Command { return job.Shell(text, os.Environ(), 0) }

func over(t *testing.T, j *job.Job) job.Status {
	t.Helper()
	select {
	case <-j.Over():
	case <-time.After(patience):
		t.Fatal("the program is not over")
	}
	return j.Status()
}

// alive reports whether a process exists that was not waited for.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// running waits for a file and returns the process IDs that are written there.
func running(t *testing.T, path string, n int) []int {
	t.Helper()
	var pids []int
	require.Eventually(t, func() bool {
		data, _ := os.ReadFile(path)
		pids = nil
		for line := range strings.Lines(string(data)) {
			var pid int
			if _, err := fmt.Sscan(line, &pid); err == nil && strings.HasSuffix(line, "\n") {
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	}, patience, time.Millisecond)
	return pids
}

// launch starts a program and waits until it runs.
func launch(j *job.Job, c job.Command) (pid int, err error) {
	err = <-j.Launch(c)
	return j.Pid(), err
}

func TestStatus(t *testing.T) {
	for text, want := range map[string]struct {
		status job.Status
		exit   int
	}{
		"exit 0":        {job.Status{}, 0},
		"exit 7":        {job.Status{Code: 7}, 7},
		"kill -KILL $$": {job.Status{Signal: syscall.SIGKILL}, 137},
	} {
		j := startJob(t)
		j.SetDeadline(far())
		pid, err := launch(j, shell(text))
		require.NoError(t, err)
		require.Positive(t, pid)
		status := over(t, j)
		require.Equal(t, want.status, status)
		require.Equal(t, want.exit, status.Exit())
		require.Equal(t, text == "exit 0", status.OK())
		j.Close()
		j.Close()
		require.False(t, alive(pid))
	}
	require.Equal(t, "killed by SIGKILL", job.Status{Signal: syscall.SIGKILL}.String())
	require.Equal(t, "exit code 7", job.Status{Code: 7}.String())
	require.Equal(t, 255, job.Status{Unknown: true}.Exit())
	require.Contains(t, job.Status{Unknown: true}.String(), "nobody knows")
}

func TestLaunchRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*job.Job)
		command job.Command
		reason  string
	}{
		"no deadline":     {func(*job.Job) {}, shell("true"), "about to run out"},
		"a deadline gone": {func(j *job.Job) { j.SetDeadline(job.Deadline{Term: 1, Kill: job.Now() + time.Hour}) }, shell("true"), "about to run out"},
		"no executable":   {func(j *job.Job) { j.SetDeadline(far()) }, job.Command{Path: "/no/such", Args: []string{"x"}}, "start /no/such: no such file"},
		"a second one": {func(j *job.Job) {
			j.SetDeadline(far())
			_, err := launch(j, shell("sleep 1000"))
			require.NoError(t, err)
		}, shell("true"), "work is done"},
	} {
		t.Run(name, func(t *testing.T) {
			j := startJob(t)
			c.prepare(j)
			_, err := launch(j, c.command)
			require.ErrorContains(t, err, c.reason)
			if errors.Is(err, job.ErrLate) { // it was only too late
				j.SetDeadline(far())
				_, err = launch(j, c.command)
				require.NoError(t, err)
				require.True(t, over(t, j).OK())
			}
			j.Kill(patience)
		})
	}
}

// groupings are both ways to find what a program has started: all that is in its control
// group, and, where there is none, what it leaves to be adopted.
var groupings = map[string]func(*testing.T){
	"control group":    func(t *testing.T) { cgrouptest.Enter(t) },
	"no control group": func(t *testing.T) { cgrouptest.Forbid(t) },
}

// The deadline: SIGTERM first, to all of the group, then SIGKILL to those who have left it, too.
func TestDeadline(t *testing.T) {
	for name, prepare := range groupings {
		t.Run(name, func(t *testing.T) {
			prepare(t)
			testDeadline(t)
		})
	}
}

func testDeadline(t *testing.T) {
	dir := t.TempDir()
	pids, terms := filepath.Join(dir, "pids"), filepath.Join(dir, "terms")
	j := startJob(t)
	j.SetDeadline(far())
	hear := `trap "echo $$ >> ` + terms + `" TERM; echo $$ >> ` + pids + `; while :; do sleep 0.01; done`
	_, err := launch(j, shell(fmt.Sprintf("(setsid sh -c '%s' &); sh -c '%s' & %s", hear, hear, hear)))
	require.NoError(t, err)
	all := running(t, pids, 3)
	kill := job.Now() + 2*time.Second
	j.SetDeadline(job.Deadline{Term: kill - 1900*time.Millisecond, Kill: kill})
	<-j.Warned()
	require.Less(t, job.Now(), kill, "INVALID: a machine too slow to tell TERM from KILL")
	// There is no way back.
	j.SetDeadline(far())
	require.Equal(t, syscall.SIGKILL, over(t, j).Signal)
	require.GreaterOrEqual(t, job.Now(), kill)
	require.Len(t, running(t, terms, 2), 2, "SIGTERM to the group, and to nobody else")
	for _, pid := range all {
		require.False(t, alive(pid))
	}
}

func TestNewerDeadlinesCount(t *testing.T) {
	j := startJob(t)
	first := job.Now() + 2*time.Second
	j.SetDeadline(job.Deadline{Term: first, Kill: first})
	_, err := launch(j, shell("sleep 2.1; exit 6"))
	require.NoError(t, err)
	j.SetDeadline(far())
	require.Equal(t, job.Status{Code: 6}, over(t, j))
	require.Greater(t, job.Now(), first)
}

// A new deadline does not wait for an order that is stuck, and is not lost, either.
//
// Fails when SetDeadline or Stop wait for their turn to write, or give up where it is not
// theirs.
func TestDeadlineBesideAnOrderThatIsStuck(t *testing.T) {
	j := startJob(t)
	j.SetDeadline(far())
	keeper := clitest.Parent(t, hookPid(t, j))
	require.NoError(t, syscall.Kill(keeper, syscall.SIGSTOP))
	big := append(os.Environ(), "A="+strings.Repeat("a", 100<<10), "B="+strings.Repeat("b", 100<<10))
	started := j.Launch(job.Shell("sleep 1000", big, 0))
	require.Eventually(t, j.Writing, patience, time.Millisecond, "INVALID: the order is not stuck")
	j.SetDeadline(far())
	kill := job.Now() + 100*time.Millisecond
	j.SetDeadline(job.Deadline{Term: kill, Kill: kill})
	j.Stop(syscall.SIGTERM, time.Hour)
	require.True(t, j.Writing(), "it waited for the order")
	// What the keeper reads is the start first, and of the deadlines the newest.
	require.NoError(t, syscall.Kill(keeper, syscall.SIGCONT))
	require.NoError(t, <-started)
	require.Equal(t, syscall.SIGKILL, over(t, j).Signal)
}

// hookPid runs a hook that tells its process ID.
func hookPid(t *testing.T, j *job.Job) int {
	path := filepath.Join(t.TempDir(), "pid")
	done := j.Run(shell("echo $$ > " + path + "; while test -e " + path + "; do sleep 0.01; done"))
	pid := running(t, path, 1)[0]
	t.Cleanup(func() { _ = os.Remove(path) })
	_ = done
	return pid
}

func TestStop(t *testing.T) {
	j := startJob(t)
	j.SetDeadline(far())
	path := filepath.Join(t.TempDir(), "pids")
	_, err := launch(j, shell(`trap "exit 3" USR1; trap "" TERM; echo $$ > `+path+`; while :; do sleep 0.01; done`))
	require.NoError(t, err)
	running(t, path, 1)
	j.Stop(syscall.SIGTERM, 300*time.Millisecond)
	require.Equal(t, syscall.SIGKILL, over(t, j).Signal, "it ignores SIGTERM")

	j.Close()
	path = filepath.Join(t.TempDir(), "pids")
	j = startJob(t)
	j.SetDeadline(far())
	pid, err := launch(j, shell(`trap "exit 3" USR1; echo $$ > `+path+`; while :; do sleep 0.01; done`))
	require.NoError(t, err)
	require.Equal(t, pid, j.Pid())
	running(t, path, 1)
	j.Signal(syscall.SIGUSR1)
	require.Equal(t, 3, over(t, j).Code)
	j.Signal(syscall.SIGUSR1) // to nobody
}

func TestHooks(t *testing.T) {
	j := startJob(t)
	env := append(os.Environ(), "BIG="+strings.Repeat("x", 100<<10))
	result := <-j.Run(job.Shell("test ${#BIG} = 102400", env, 0))
	require.NoError(t, result.Failure(), "more than a pipe holds")
	require.EqualError(t, (<-j.Run(shell("exit 4"))).Failure(), "exit code 4")
	result = <-j.Run(job.Shell("sleep 1000", os.Environ(), 50*time.Millisecond))
	require.True(t, result.TimedOut)
	require.ErrorContains(t, result.Failure(), "too long")
	require.ErrorContains(t, (<-j.Run(job.Command{Path: "/no/such", Args: []string{"x"}})).Failure(), "start /no/such")

	// Beside a program, and ended with it.
	j.SetDeadline(far())
	_, err := launch(j, shell("sleep 1000"))
	require.NoError(t, err)
	hook := j.Run(shell("sleep 1000"))
	j.Kill(patience)
	require.Error(t, (<-hook).Failure())
	require.Equal(t, syscall.SIGKILL, over(t, j).Signal)
	j.Close()
	require.ErrorIs(t, (<-j.Run(shell("true"))).Failure(), job.ErrKeeper)
	_, err = launch(j, shell("true"))
	require.ErrorIs(t, err, job.ErrKeeper)
}

// A keeper that was killed, or stands still: the owner does its work.
func TestWithoutTheKeeper(t *testing.T) {
	for name, prepare := range groupings {
		t.Run(name, func(t *testing.T) {
			prepare(t)
			testWithoutTheKeeper(t)
		})
	}
}

func testWithoutTheKeeper(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(j *job.Job, keeper int)
		fate string
	}{
		"killed": {func(_ *job.Job, keeper int) { _ = syscall.Kill(keeper, syscall.SIGKILL) }, "killed by SIGKILL"},
		"stopped": {func(j *job.Job, keeper int) {
			_ = syscall.Kill(keeper, syscall.SIGSTOP)
			j.Kill(10 * time.Millisecond)
		}, "did not listen"},
		"stopped, and closed": {func(j *job.Job, keeper int) {
			_ = syscall.Kill(keeper, syscall.SIGSTOP)
			j.Close()
		}, ""},
	} {
		act, fate := c.act, c.fate
		t.Run(name, func(t *testing.T) {
			// Not ours to kill.
			other := exec.Command("sleep", "1000")
			require.NoError(t, other.Start())
			defer func() { _, _ = other.Process.Kill(), other.Wait() }()
			path := filepath.Join(t.TempDir(), "pids")
			j := startJob(t)
			j.SetDeadline(far())
			say := `trap "" TERM; echo $$ >> ` + path + `; while :; do sleep 0.01; done`
			pid, err := launch(j, shell(fmt.Sprintf("(setsid sh -c '%s' &); sh -c '%s' & %s", say, say, say)))
			require.NoError(t, err)
			all := running(t, path, 3)
			act(j, clitest.Parent(t, pid))
			over(t, j)
			for _, pid := range all {
				require.False(t, alive(pid))
			}
			if fate == "" {
				require.NoError(t, j.Lost(), "it was told to go")
			} else {
				require.ErrorIs(t, j.Lost(), job.ErrKeeper)
				require.ErrorContains(t, j.Lost(), fate)
			}
			require.True(t, alive(other.Process.Pid))
			require.ErrorIs(t, (<-j.Run(shell("true"))).Failure(), job.ErrKeeper)
		})
	}
}

// Orphans that end are waited for: a program that makes many does not fill the table of
// processes.
func TestOrphansAreWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pids")
	j := startJob(t)
	j.SetDeadline(far())
	_, err := launch(j, shell(`for i in 1 2 3 4 5; do (sh -c 'echo $$ >> `+path+`' &); done; exec sleep 1000`))
	require.NoError(t, err)
	for _, pid := range running(t, path, 5) {
		require.Eventually(t, func() bool { return !alive(pid) }, patience, time.Millisecond, "a zombie")
	}
	j.Kill(patience)
}

// The slow way to find children, for kernels without lists of them.
func TestChildrenWithoutLists(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	slowly, sure := job.AskAll(os.Getpid())
	require.True(t, sure)
	require.Contains(t, slowly, cmd.Process.Pid)
	quickly, sure := job.Children()
	require.True(t, sure)
	require.ElementsMatch(t, slowly, quickly)
}

func TestPromises(t *testing.T) { require.Empty(t, job.Promises(), "Linux keeps them all") }
