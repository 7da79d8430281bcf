//go:build linux

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// asTree in the environment makes the test binary a program that starts chains of processes, each of
// which leaves its session, forks and ends. They run as another user. The arguments are the files
// with which the program enters the control groups that bound them, the file to which each process
// writes one byte, and the number of chains. The processes also hold a lock on that file: it is free
// when none of them is left.
const asTree = "ELDEST_TEST_AS_TREE"

// withoutKill in the environment takes from the process, and from all that it starts, the
// right to send signals to processes of other users.
const withoutKill = "ELDEST_TEST_WITHOUT_KILL"

func init() {
	if os.Getenv(asTree) != "" {
		chains, _ := strconv.Atoi(os.Args[3])
		tree(os.Args[1], os.Args[2], chains)
	}
}

// It is initialized before any init runs, because in one of those the process becomes a command.
var _ = dropKill()

func dropKill() (done struct{}) {
	if os.Getenv(withoutKill) == "" {
		return done
	}
	_ = os.Unsetenv(withoutKill)
	runtime.LockOSThread()
	if unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_KILL, 0, 0, 0) != nil || syscall.Exec("/proc/self/exe", os.Args, os.Environ()) != nil {
		os.Exit(97)
	}
	return done
}

const (
	nobody       = 65534 // a user ID
	mostOfForest = 200   // processes of a tree at a time, at most
)

func tree(join, path string, chains int) {
	for file := range strings.SplitSeq(join, ",") {
		if os.WriteFile(file, []byte("0"), 0) != nil {
			os.Exit(96) // never without a bound
		}
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil || syscall.Flock(int(file.Fd()), syscall.LOCK_SH) != nil {
		os.Exit(95)
	}
	_, _ = syscall.Close(1), syscall.Close(2) // a test that fails does not wait for them
	// They also end by themselves, if no process kills them.
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	fd, end := file.Fd(), now.Sec+60
	runtime.LockOSThread()
	for range chains {
		if pid, _, _ := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0); pid == 0 {
			chain(fd, end)
		}
	}
	for {
		if _, err := os.Stat(path + ".end"); err == nil {
			os.Exit(0)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// chain is a process with one thread and without Go's runtime: it makes system calls and
// nothing else.
//
//go:norace
//go:nosplit
func chain(fd uintptr, end int64) {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_SETUID, nobody, 0, 0) //nolint:errcheck // there is nobody to tell
	for {
		syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)                             //nolint:errcheck // there is nobody to tell
		syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&now)), 1) //nolint:errcheck // there is nobody to tell
		syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0)
		pid, _, failed := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if failed == 0 && pid != 0 || int64(now.Sec) > end { //nolint:unconvert // 32 bits elsewhere
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0) //nolint:errcheck // as above
		}
		if failed != 0 { // there is a free place once others are waited for, for which their parent needs a processor
			pause := syscall.Timespec{Nsec: 1e6}
			syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0) //nolint:errcheck // as above
		}
	}
}

// forest is a tree as the program of "eldest run".
type forest struct {
	t      *testing.T
	join   string
	file   *os.File
	chains string
}

func newForest(t *testing.T, chains int) forest {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root has processes run as another user")
	}
	file, err := os.Create(t.TempDir() + "/chains")
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return forest{t, strings.Join(clitest.Confine(t, mostOfForest), ","), file, strconv.Itoa(chains)}
}

func (f forest) program() []string {
	return []string{"env", asTree + "=1", os.Args[0], f.join, f.file.Name(), f.chains}
}

// grows waits until more processes were started than may exist at a time: then some have ended and
// were waited for.
func (f forest) grows() {
	f.t.Helper()
	begun := f.length()
	require.Eventually(f.t, func() bool { return f.length() > begun+mostOfForest+50 }, patience, time.Millisecond, "INVALID: nothing forks")
}

func (f forest) length() int64 {
	info, err := f.file.Stat()
	require.NoError(f.t, err)
	return info.Size()
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
	etcd := borrowed(t).with(withoutKill + "=1").changed(clitest.In(t, clitest.BarrenCgroup(t)))
	f := newForest(t, 1) // one is enough: none can be killed
	after := filepath.Join(t.TempDir(), "after")
	r := etcd.run(append([]string{"svc", "--ttl", "10m", "--command-timeout", "1s", "--restart", "always", "--on-loss", "touch " + after, "--"}, f.program()...)...)
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
			require.Eventually(r.T, f.dead, patience, time.Millisecond, "it lives on after the deadline")
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
			etcd := borrowed(t).with(withoutKill + "=1").changed(clitest.In(t, groups))
			f := newForest(t, 32)
			r := etcd.run(append([]string{"svc", "--ttl", "10s", "--"}, f.program()...)...)
			_, keeper := program(r)
			f.grows()
			require.Len(t, glob(groups+"/eldest-run-*"), 1, "INVALID: no control group")
			c.end(r, f, keeper)
			released := c.code == cli.ExitOK || c.code == cli.ExitFailed
			if released {
				r.Told("resigned")
				require.True(t, f.dead(), "the tree lives, and the key may go")
			}
			require.Eventually(t, f.dead, patience, time.Millisecond, "it lives on")
			r.Exits(c.code)
			noProcess(t, mark(t), keeperCommand)
			require.Empty(t, glob(groups+"/eldest-run-*"), "a control group is left")
			if released {
				require.Empty(t, etcd.candidates(), "the key is left")
			}
		})
	}
}
