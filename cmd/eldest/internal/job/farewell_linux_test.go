package job_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/job"
)

// own is an owner with a program, which it starts and then closes, or waits to be killed.
func own(file, then string) {
	j, err := job.Start([]string{"job.test", "keep"}, nil, os.Stdout, os.Stderr)
	if err == nil {
		err = j.SetFarewell([]byte(file))
	}
	if err == nil {
		j.SetDeadline(far())
		err = <-j.Launch(shell("echo $$ >" + file + ".new; mv " + file + ".new " + file + ".pid; sleep 60 & sleep 60"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if then == "close" {
		for _, err := os.Stat(file + ".pid"); err != nil; _, err = os.Stat(file + ".pid") {
			time.Sleep(time.Millisecond) // else a farewell would fail
		}
		j.Close()
		os.Exit(0)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestFarewell: what is to be done for an owner is done when that has died, and after the program
// has; and not for one that has ended its keeper.
func TestFarewell(t *testing.T) {
	start := func(t *testing.T, then string) (file string, owner *exec.Cmd) {
		file = filepath.Join(t.TempDir(), "farewell")
		owner = exec.Command(os.Args[0])
		owner.Args = []string{"job.test", "own", file, then}
		in, err := owner.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, owner.Start())
		t.Cleanup(func() { _ = in.Close(); _ = owner.Process.Kill(); _ = owner.Wait() })
		return file, owner
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		file, owner := start(t, "wait")
		require.Eventually(t, func() bool { _, err := os.Stat(file + ".pid"); return err == nil }, patience, time.Millisecond)
		require.NoError(t, owner.Process.Kill())
		require.Eventually(t, func() bool {
			said, _ := os.ReadFile(file)
			require.NotEqual(t, "alive", string(said), "the program runs still")
			return string(said) == "dead"
		}, patience, time.Millisecond)
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		file, owner := start(t, "close")
		require.NoError(t, owner.Wait())
		require.Never(t, func() bool { _, err := os.Stat(file); return err == nil }, 300*time.Millisecond, 10*time.Millisecond, "the owner lived")
	})
}
