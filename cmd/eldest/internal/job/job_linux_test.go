package job_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

const patience = clitest.Patience

// TestMain also runs this binary as the keeper, which Start starts, and as an owner that the tests
// can kill.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "keep":
		if err := job.Keep(farewell); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) > 2 && os.Args[1] == "own":
		if err := own(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	etcdtest.Parallel(4) // the tests with processes of their own mostly wait
	goleak.VerifyTestMain(m)
}

// start starts a keeper that runs the shell commands which launched and run give to it.
func start(more ...func(*job.Spec)) (*job.Job, error) {
	line := job.Shell(`eval "$RUN"`, 0)
	spec := job.Spec{Program: line, Hooks: map[string]job.Command{"hook": line, "missing": {Path: "/no/such"}}, Env: os.Environ()}
	for _, change := range more {
		change(&spec)
	}
	return job.Start([]string{"job.test", "keep"}, spec, nil, os.Stdout, os.Stderr)
}

func startJob(t *testing.T, more ...func(*job.Spec)) *job.Job {
	t.Helper()
	j, err := start(more...)
	require.NoError(t, err)
	t.Cleanup(j.Close)
	return j
}

// launched starts a keeper with a program.
func launched(t *testing.T, text string) *job.Job {
	t.Helper()
	j := startJob(t)
	j.SetDeadline(far())
	require.NoError(t, <-j.Launch("RUN="+text))
	return j
}

func run(j *job.Job, text string) error {
	result := <-j.Run("hook", "RUN="+text)
	return result.Failure()
}

// far is a deadline that is not reached.
func far() job.Deadline { return at(job.Now() + time.Hour) }

func at(kill time.Duration) job.Deadline { return job.Deadline{Term: kill, Kill: kill} }

func over(t *testing.T, j *job.Job) job.Status {
	t.Helper()
	_, ok := clitest.Awaited(j.Over())
	require.True(t, ok, "the program is not over")
	return j.End().Status
}

// alive reports whether a process exists that was not waited for.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// pidsIn waits for a file and returns the process IDs that are written there.
func pidsIn(t *testing.T, path string, n int) (pids []int) {
	t.Helper()
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

// halt stops a process and waits until it has stopped.
func halt(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	clitest.Halt(t, p)
}

func glob(t *testing.T, pattern string) (found []string) {
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}

// grouped runs a test with both ways to find what a program has started: all that is in its control
// group, in dir, and, if there is none, all that it leaves to be adopted. Each runs in a process of its own,
// beside the other: a process has one job at a time, and is in one control group.
func grouped(t *testing.T, test func(t *testing.T, dir string)) {
	t.Parallel()
	for name, dir := range map[string]func(t testing.TB) string{
		"control group":    func(t testing.TB) string { return clitest.Enter(t, clitest.Cgroup(t)) },
		"no control group": func(t testing.TB) string { clitest.Enter(t, clitest.BarrenCgroup(t)); return "" },
	} {
		t.Run(name, func(t *testing.T) {
			if etcdtest.Alone(t) {
				test(t, dir(t))
			}
		})
	}
}

// The status of a program is reported, also in the form of a shell.
func TestStatus(t *testing.T) {
	for text, want := range map[string]struct {
		status job.Status
		exit   int
		words  string
	}{
		"exit 0":        {job.Status{}, 0, "exit code 0"},
		"exit 7":        {job.Status{Code: 7}, 7, "exit code 7"},
		"kill -KILL $$": {job.Status{Signal: syscall.SIGKILL}, 137, "killed by SIGKILL"},
	} {
		j := launched(t, text)
		pid := j.Pid()
		require.Positive(t, pid)
		status := over(t, j)
		require.Equal(t, want.status, status)
		require.Equal(t, want.exit, status.Exit())
		require.Equal(t, want.words, status.String())
		require.Equal(t, text == "exit 0", status.OK())
		j.Signal(syscall.SIGUSR1) // no process receives it
		j.Close()
		j.Close()
		require.False(t, alive(pid))
	}
	require.Equal(t, 255, job.Status{Unknown: true}.Exit())
	require.Contains(t, job.Status{Unknown: true}.String(), "exit status is unknown")
	require.Empty(t, job.Promises(), "Linux keeps them all")
}

// Without a deadline, or with one that is over, no program is started; after a new one it is.
func TestLaunchIsTooLate(t *testing.T) {
	for name, first := range map[string]job.Deadline{"none": {}, "over": {Term: 1, Kill: job.Now() + time.Hour}} {
		t.Run(name, func(t *testing.T) {
			j := startJob(t)
			if first.Kill != 0 {
				j.SetDeadline(first)
			}
			require.ErrorIs(t, <-j.Launch("RUN=true"), job.ErrLate)
			j.SetDeadline(far())
			require.NoError(t, <-j.Launch("RUN=true"))
			require.True(t, over(t, j).OK())
		})
	}
}

// family is a program with one child in its process group and one that has left it. Each runs the
// text and then loops; all ignore SIGTERM, unless the text traps it.
func family(text string) string {
	one := `trap "" TERM; ` + text + `; while :; do sleep 0.01; done`
	return fmt.Sprintf("(setsid sh -c '%s' &); sh -c '%s' & %s", one, one, one)
}

// At the deadline: SIGTERM to all of the group, then SIGKILL, also to processes that have left it.
func TestDeadline(t *testing.T) {
	grouped(t, func(t *testing.T, _ string) {
		pids, terms := t.TempDir()+"/pids", t.TempDir()+"/terms"
		j := launched(t, family(`trap "echo $$ >> `+terms+`" TERM; echo $$ >> `+pids))
		all := pidsIn(t, pids, 3)
		kill := job.Now() + 6*time.Second
		j.SetDeadline(job.Deadline{Term: kill - 5900*time.Millisecond, Kill: kill})
		<-j.Warned()
		require.Less(t, job.Now(), kill, "INVALID: a machine too slow to tell TERM from KILL")
		// A new deadline does not undo it.
		j.SetDeadline(far())
		require.Equal(t, syscall.SIGKILL, over(t, j).Signal)
		require.GreaterOrEqual(t, job.Now(), kill)
		require.Len(t, pidsIn(t, terms, 2), 2, "SIGTERM to the group, and to nobody else")
		require.False(t, slices.ContainsFunc(all, alive))
	})
}

// However a job ends, and whichever of owner and keeper does the work, nothing of it is left: no
// process, no control group, and no group that the program has made below it. Program and hooks are
// in the group from their first instruction on.
func TestEnd(t *testing.T) {
	grouped(t, func(t *testing.T, dir string) {
		for name, c := range map[string]struct {
			end  func(j *job.Job, keeper int)
			lost string
		}{
			"closed":                     {func(j *job.Job, _ int) { j.Close() }, ""},
			"killed":                     {func(j *job.Job, _ int) { j.Kill(patience) }, ""},
			"program killed":             {func(j *job.Job, _ int) { _ = syscall.Kill(j.Pid(), syscall.SIGKILL) }, ""},
			"keeper killed":              {func(_ *job.Job, keeper int) { _ = syscall.Kill(keeper, syscall.SIGKILL) }, "killed by SIGKILL"},
			"keeper stopped, and killed": {func(j *job.Job, keeper int) { halt(t, keeper); j.Kill(10 * time.Millisecond) }, "did not respond"},
			"keeper stopped, and closed": {func(j *job.Job, keeper int) { halt(t, keeper); j.Close() }, ""},
		} {
			t.Run(name, func(t *testing.T) {
				other := exec.Command("sleep", "1000") // the job must not kill it
				require.NoError(t, other.Start())
				defer func() { _, _ = other.Process.Kill(), other.Wait() }()
				j, groups := startJob(t), dir+"/eldest-run-*"
				path, text := t.TempDir()+"/pids", ""
				if dir != "" {
					require.NoError(t, run(j, "grep -q ^0::.*/eldest-run- /proc/self/cgroup"), "a hook is not in it")
					text = `for d in ` + groups + `; do mkdir -p $d/below; echo 0 > $d/below/cgroup.procs; done; `
				}
				j.SetDeadline(far())
				require.NoError(t, <-j.Launch("RUN="+family(text+`echo $$ >> `+path)))
				require.Equal(t, dir == "", j.Ungrouped() != nil)
				all := pidsIn(t, path, 3)
				if dir != "" {
					require.Len(t, glob(t, groups+"/below"), 1, "INVALID: the program cannot make a group")
				}
				c.end(j, clitest.Parent(t, j.Pid()))
				over(t, j)
				require.False(t, slices.ContainsFunc(all, alive), "a process of the program lives")
				if c.lost == "" {
					require.NoError(t, j.End().Lost, "it was told to go")
				} else {
					require.ErrorIs(t, j.End().Lost, job.ErrKeeper)
					require.ErrorContains(t, j.End().Lost, c.lost)
				}
				j.Close()
				require.NoError(t, j.End().Left)
				require.Empty(t, glob(t, groups))
				require.True(t, alive(other.Process.Pid))
				require.ErrorIs(t, run(j, "true"), job.ErrKeeper)
				require.ErrorIs(t, <-j.Launch("RUN=true"), job.ErrKeeper)
			})
		}
	})
}

// A keeper that is stopped blocks nothing, even when its pipe is full of orders.
//
// Fails when orders wait for the keeper.
func TestStoppedKeeperHoldsUpNothing(t *testing.T) {
	j := launched(t, "sleep 1000")
	keeper := clitest.Parent(t, j.Pid())
	halt(t, keeper)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range 5000 {
			j.SetDeadline(far())
		}
		j.Stop(syscall.SIGCONT, time.Hour)
	}()
	if _, ok := clitest.Awaited(told); !ok {
		_ = syscall.Kill(keeper, syscall.SIGKILL)
		t.Fatal("it waits for the keeper")
	}
	require.ErrorIs(t, run(j, "true"), job.ErrKeeper)
	require.Equal(t, syscall.SIGKILL, over(t, j).Signal)
	require.ErrorContains(t, j.End().Lost, "did not respond")
}

// What is run has an environment that is longer than a pipe, and that is not text. A hook beside the
// program ends with it.
func TestHook(t *testing.T) {
	j := startJob(t, func(s *job.Spec) { s.Env = append(s.Env, "BIG="+strings.Repeat("\xff", 100<<10)) })
	require.NoError(t, run(j, "test $(printf %s $BIG | wc -c) = 102400"))
	result := <-j.Run("missing")
	require.ErrorContains(t, result.Failure(), "start /no/such")
	j.SetDeadline(far())
	require.NoError(t, <-j.Launch("RUN=sleep 1000"))
	hook := j.Run("hook", "RUN=sleep 1000")
	require.NoError(t, <-j.Launch("RUN=exit 7"), "it runs already, and no second one is started")
	j.Kill(patience)
	result = <-hook
	require.ErrorIs(t, result.Failure(), job.ErrOver)
	require.Equal(t, syscall.SIGKILL, over(t, j).Signal)
}

// Orphans that end are waited for: a program that makes many does not fill the process table.
func TestOrphansAreWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pids")
	j := launched(t, `for i in 1 2 3 4 5; do (sh -c 'echo $$ >> `+path+`' &); done; exec sleep 1000`)
	for _, pid := range pidsIn(t, path, 5) {
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

// A keeper that finds both the order to start the program and the order to kill in its pipe starts
// nothing.
//
// Fails when it executes one order after the other.
func TestKeeperStartsNothingThatIsToBeKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pid")
	j := startJob(t)
	j.SetDeadline(far())
	j.Run("hook", "RUN=echo $$ > "+path+"; exec sleep 1000")
	keeper := clitest.Parent(t, pidsIn(t, path, 1)[0])
	halt(t, keeper)
	started, before := j.Launch("RUN=sleep 1000"), j.Unread(t)
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		j.Kill(patience)
	}()
	require.Eventually(t, func() bool { return j.Unread(t) > before }, patience, time.Millisecond)
	require.NoError(t, syscall.Kill(keeper, syscall.SIGCONT))
	require.ErrorContains(t, <-started, "the job has already ended", "it was started, and killed")
	<-killed
}

// Kill reaches the program's process group without a keeper and without a list of processes, which
// cannot be read because no file descriptor is free.
//
// Fails when it kills only what it finds in lists.
func TestKillReachesTheProcessGroup(t *testing.T) {
	clitest.Enter(t, clitest.BarrenCgroup(t))
	path := filepath.Join(t.TempDir(), "pids")
	j := launched(t, `sh -c 'echo $$ >> `+path+`; sleep 1000; true' & echo $$ >> `+path+`; sleep 1000; true`)
	var ends []unix.PollFd
	for _, pid := range pidsIn(t, path, 2) {
		fd, err := unix.PidfdOpen(pid, 0)
		require.NoError(t, err)
		defer func() { _ = unix.Close(fd) }()
		ends = append(ends, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	keeper := clitest.Parent(t, j.Pid())
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

// A control group in which no process can be started is not used, and that is reported.
func TestCgroupThatCannotBeUsed(t *testing.T) {
	dir := clitest.Enter(t, clitest.Cgroup(t))
	j := startJob(t)
	require.NoError(t, run(j, "true")) // the group is open by now
	for _, group := range glob(t, dir+"/eldest-run-*") {
		require.NoError(t, syscall.Rmdir(group))
	}
	j.SetDeadline(far())
	require.NoError(t, <-j.Launch("RUN=exit 3"))
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

// The next job removes a control group that is left, if it is one of eldest's, if no process has it
// open any more, and if no process is in it or below it.
//
// Fails when the leftover stays, and when anything else is removed.
func TestLeftoverIsRemoved(t *testing.T) {
	dir := clitest.Enter(t, clitest.Cgroup(t))
	group := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(path, 0o700))
		return path
	}
	left := group("eldest-run-17")
	group("eldest-run-17/below/more")
	others := []string{group("eldest-run-"), group("eldest-run-1x"), group("eldest-runs-17"), group("other-17")}
	populated := group("eldest-run-18")
	sleeper := exec.Command("sleep", "1000")
	require.NoError(t, sleeper.Start())
	defer func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() }()
	require.NoError(t, os.WriteFile(populated+"/cgroup.procs", []byte(strconv.Itoa(sleeper.Process.Pid)), 0))

	waiting := startJob(t) // its program is not started yet
	require.NoError(t, run(waiting, "true"))
	require.NoDirExists(t, left, "what is left stays")
	before := glob(t, dir+"/eldest-run-[0-9]*")
	require.Len(t, before, 3, "INVALID: those that are there: %v", before) // with eldest-run-1x

	next := startJob(t)
	require.NoError(t, next.Ungrouped())
	for _, path := range append(before, append(others, populated)...) {
		require.DirExists(t, path, "it is in use, or not ours")
	}
	waiting.SetDeadline(far())
	require.NoError(t, <-waiting.Launch("RUN=grep -q ^0::.*/eldest-run- /proc/self/cgroup"))
	require.NoError(t, waiting.Ungrouped(), "the group of a job that waits was removed")
	require.Zero(t, over(t, waiting).Code)
	// next is closed first: it excludes the keeper of the other job. In the other order that job
	// would deal with all children of this process as its own.
	next.Close()
	waiting.Close()
	require.Len(t, glob(t, dir+"/eldest-run-[0-9]*"), 2, "the groups of jobs that have ended are left")
}

// The program reads messages, which a shell can do; a hook does not have them. Of those that it does
// not read in time it gets the newest; sending does not block, also when the program has ended.
func TestMessages(t *testing.T) {
	read, asked := filepath.Join(t.TempDir(), "read"), filepath.Join(t.TempDir(), "asked")
	j := startJob(t, func(s *job.Spec) { s.Messages = true })
	j.SetDeadline(far())
	line := func(i int) []byte { return []byte(fmt.Sprintf("%d%s\n", i, strings.Repeat(".", 4000))) }
	for i := range 50 { // more than a pipe holds
		j.Send(line(i))
	}
	j.Send([]byte("last\n"))
	require.NoError(t, <-j.Launch(fmt.Sprintf(`RUN=
		while read -r line <&%d; do
			echo "$line" >>%s
			[ "$line" != last ] || break
		done
		while [ ! -e %s ]; do sleep 0.01; done`, job.MessagesFD, read, asked)))
	require.Eventually(t, func() bool {
		data, _ := os.ReadFile(read)
		return strings.HasSuffix(string(data), "\nlast\n") || string(data) == "last\n"
	}, patience, time.Millisecond)
	require.NoError(t, run(j, fmt.Sprintf("! read -r line <&%d", job.MessagesFD)), "the hook has them, too")
	require.NoError(t, <-j.Launch(), "it runs already")
	require.NoError(t, os.WriteFile(asked, nil, 0o600))
	over(t, j)
	for i := range 50 {
		j.Send(line(i))
	}
	require.Error(t, <-j.Launch(), "it has ended")
}
