//go:build linux

package pidfd_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/pidfd"
)

// role says which of the two processes of TestDead this one is.
const role = "PIDFD_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "parent": // starts the child and waits to be killed
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), role+"=child", fmt.Sprintf("PIDFD_TEST_PARENT=%d", os.Getpid()))
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			os.Exit(1)
		}
	case "child":
		var parent int
		_, err := fmt.Sscan(os.Getenv("PIDFD_TEST_PARENT"), &parent)
		fd := -1
		if err == nil {
			fd, err = pidfd.Parent(parent)
		}
		fmt.Println("watches", err)
		fmt.Println("dead at once", pidfd.Dead(fd, 0))
		fmt.Println("dead", pidfd.Dead(fd, time.Minute))
	default:
		os.Exit(m.Run())
	}
}

// TestDead: the end of the parent is seen, and not before.
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

// TestNotTheParent: another process's end says nothing.
func TestNotTheParent(t *testing.T) {
	_, err := pidfd.Parent(os.Getpid())
	require.ErrorContains(t, err, "not the parent")
}
