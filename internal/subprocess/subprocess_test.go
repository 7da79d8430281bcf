//go:build linux

package subprocess_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/internal/subprocess"
)

// role is the environment variable with the role of a process of TestDead.
const role = "SUBPROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "parent": // starts the child and waits to be killed
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), role+"=child", fmt.Sprintf("SUBPROCESS_TEST_PARENT=%d", os.Getpid()))
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			os.Exit(1)
		}
	case "child":
		var parent int
		_, err := fmt.Sscan(os.Getenv("SUBPROCESS_TEST_PARENT"), &parent)
		fd := -1
		if err == nil {
			fd, err = subprocess.Parent(parent)
		}
		fmt.Println("watches", err)
		fmt.Println("dead at once", subprocess.Dead(fd, 0))
		fmt.Println("dead", subprocess.Dead(fd, time.Minute))
	default:
		os.Exit(m.Run())
	}
}

// TestDead: the end of the parent is detected, and not before it.
func TestDead(t *testing.T) {
	parent := exec.Command("/proc/self/exe")
	parent.Env = append(os.Environ(), role+"=parent")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	parent.Stdout = w
	require.NoError(t, parent.Start())
	require.NoError(t, w.Close())
	lines := bufio.NewScanner(r)
	said := func() string { lines.Scan(); return lines.Text() }
	require.Equal(t, "watches <nil>", said())
	require.Equal(t, "dead at once false", said())
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Equal(t, "dead true", said())
}

// TestNotTheParent: Parent fails for another process, and a process that Start did not start has no
// orders.
func TestNotTheParent(t *testing.T) {
	_, err := subprocess.Parent(os.Getpid())
	require.ErrorContains(t, err, "not the parent")
	require.ErrorIs(t, subprocess.Inherit(), subprocess.ErrNotStarted)
}

// TestOffer: lines are written until the pipe is full. Then Offer does not wait, and writes no part
// of a line.
func TestOffer(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	line := make([]byte, 4096)
	written := 0
	for err = subprocess.Offer(w, line); err == nil; err = subprocess.Offer(w, line) {
		written += len(line)
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NoError(t, w.Close())
	require.Error(t, subprocess.Offer(w, line))
	read := 0
	for buffer := make([]byte, 64<<10); ; {
		n, err := r.Read(buffer)
		read += n
		if err != nil {
			break
		}
	}
	require.Equal(t, written, read)
	require.Positive(t, read)
}
