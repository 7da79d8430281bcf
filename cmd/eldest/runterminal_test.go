//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// terminal makes a terminal and returns both of its ends.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(ours.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// A program that reads from the terminal at which eldest was started, or sets it up, is not
// stopped by it: who stands still leads, does nothing, and nobody is told.
//
// Fails when the program is in the session of the terminal, in another group than its.
func TestRunIsNotStoppedByItsTerminal(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	ours, theirs := terminal(t)
	cmd := etcd.command("run", "svc", "--ttl", "60s", "--", "sh", "-c",
		"stty sane <&1; echo set $?; cat; echo empty $?; read x </dev/tty; echo end")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // as a shell's
	p := clitest.Start(t, cmd)
	var shown clitest.Sheet
	go func() {
		buffer := make([]byte, 1000)
		for {
			n, err := ours.Read(buffer)
			_, _ = shown.Write(bytes.ReplaceAll(buffer[:n], []byte("\r"), nil))
			if err != nil {
				return // the terminal is closed
			}
		}
	}()
	_, ended := clitest.Awaited(p.Done)
	require.True(t, ended, "it stands still: %s", &shown)
	require.Zero(t, p.ProcessState.ExitCode(), shown.String())
	for _, line := range []string{"set 0\n", "empty 0\n", "end\n"} { // the last ones may still be on their way
		require.Eventually(t, func() bool { return strings.Contains(shown.String(), line) }, patience, time.Millisecond, "no %q in %s", line, &shown)
	}
	require.Empty(t, etcd.keys())
	newDiary(t).nobody("svc")
}
