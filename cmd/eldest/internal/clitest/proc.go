package clitest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Stat returns the state of a process in the kernel, T if it is stopped, and its parent. ok is false
// if it has ended, waited for or not.
func Stat(pid int) (state byte, parent int, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// pid (name, of any characters) state parent ...
	text := string(data)
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	parent, err = strconv.Atoi(fields[1])
	state = fields[0][0]
	return state, parent, err == nil && state != 'Z' && state != 'X'
}

// Parent returns the process that has started pid, which must run.
func Parent(t testing.TB, pid int) int {
	t.Helper()
	_, parent, ok := Stat(pid)
	require.True(t, ok, "process %d does not run", pid)
	return parent
}

// Children returns the processes that pid has started and that still run.
func Children(pid int) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if _, parent, ok := Stat(child); ok && parent == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// RequireGone waits until none of the processes runs.
func RequireGone(t testing.TB, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { _, _, runs := Stat(pid); return !runs }, 2*Patience, 10*time.Millisecond, "process %d is still there", pid)
	}
}

// Halt stops a process and waits until it has stopped.
func Halt(t testing.TB, p *os.Process) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool { state, _, _ := Stat(p.Pid); return state == 'T' }, Patience, time.Millisecond, "%d has not stopped", p.Pid)
}
