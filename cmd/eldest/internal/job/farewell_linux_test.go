package job_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// farewell writes to a file whether a process, whose ID is in another file, has ended.
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
		if _, _, runs := clitest.Stat(pid); runs {
			said = "alive"
		}
		return os.WriteFile(string(with), []byte(said), 0o600)
	}
}

// own is an owner: it starts a job with a program, and then closes it or waits to be killed. Or it is
// killed before its keeper has begun.
func own(file, then string) error {
	j, err := start(func(s *job.Spec) { s.Farewell = []byte(file) })
	if err != nil {
		return err
	}
	if then == "die" {
		keeper := clitest.Children(os.Getpid())[0]
		_ = syscall.Kill(keeper, syscall.SIGSTOP) // it continues when this process dies
		err := os.WriteFile(file+".pid", fmt.Append(nil, os.Getpid()), 0o600)
		return errors.Join(err, specified(keeper), syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	j.SetDeadline(far())
	if err := <-j.Launch("RUN=echo $$ >" + file + ".new; mv " + file + ".new " + file + ".pid; sleep 60 & sleep 60"); err != nil {
		return err
	}
	if then == "wait" {
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}
	for _, err := os.Stat(file + ".pid"); err != nil; _, err = os.Stat(file + ".pid") {
		time.Sleep(time.Millisecond) // otherwise a farewell would fail
	}
	j.Close()
	return nil
}

// specified waits until what a keeper is to know is in its pipe: then nobody has that open for writing.
func specified(keeper int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", keeper, job.SpecFD), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for pipe := []unix.PollFd{{Fd: int32(fd)}}; pipe[0].Revents&unix.POLLHUP == 0; {
		_, _ = unix.Poll(pipe, -1)
	}
	return unix.Close(fd)
}

// TestFarewell: the farewell is called when the owner and the program have died, and not if the owner
// has ended its keeper.
func TestFarewell(t *testing.T) {
	owner := func(t *testing.T, then string) (file string, owner *exec.Cmd) {
		file = filepath.Join(t.TempDir(), "farewell")
		owner = exec.Command(os.Args[0])
		owner.Args = []string{"job.test", "own", file, then}
		owner.Stderr = os.Stderr
		in, err := owner.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, owner.Start())
		t.Cleanup(func() { _ = in.Close(); _ = owner.Process.Kill(); _ = owner.Wait() })
		return file, owner
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		file, owner := owner(t, "wait")
		require.Eventually(t, func() bool { _, err := os.Stat(file + ".pid"); return err == nil }, patience, time.Millisecond)
		require.NoError(t, owner.Process.Kill())
		require.Eventually(t, func() bool {
			said, _ := os.ReadFile(file)
			require.NotEqual(t, "alive", string(said), "the program runs still")
			return string(said) == "dead"
		}, patience, time.Millisecond)
	})
	// Fails if the keeper takes the parent that it has by then for its owner, and waits for its death.
	t.Run("killed before the keeper begins", func(t *testing.T) {
		t.Parallel()
		file, owner := owner(t, "die")
		require.Error(t, owner.Wait())
		require.Eventually(t, func() bool { said, _ := os.ReadFile(file); return string(said) == "dead" }, patience, time.Millisecond, "no farewell")
	})
	// The kernel kills the program when the keeper is killed while the owner is stopped.
	t.Run("both stand still", func(t *testing.T) {
		t.Parallel()
		file, owner := owner(t, "wait")
		require.Eventually(t, func() bool { _, err := os.Stat(file + ".pid"); return err == nil }, patience, time.Millisecond)
		program := pidsIn(t, file+".pid", 1)[0]
		t.Cleanup(func() { _ = syscall.Kill(-program, syscall.SIGKILL) }) // its children would outlive it
		keeper := clitest.Parent(t, program)
		halt(t, owner.Process.Pid)
		require.NoError(t, syscall.Kill(keeper, syscall.SIGKILL))
		clitest.RequireGone(t, []int{program})
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		file, owner := owner(t, "close")
		require.NoError(t, owner.Wait())
		require.Never(t, func() bool { _, err := os.Stat(file); return err == nil }, 300*time.Millisecond, 10*time.Millisecond, "the owner lived")
	})
}
