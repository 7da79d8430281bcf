//go:build unix

package clitest

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Halt stops a process and waits until it stands still.
func Halt(t testing.TB, p *os.Process) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool { state, _, _ := Stat(p.Pid); return state == 'T' }, Patience, time.Millisecond, "%d does not stand still", p.Pid)
}
