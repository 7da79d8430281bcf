package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

func init() {
	processCommands["stall"] = func(_ *testscript.TestScript, p *clitest.Process, _ []string) { stall(p) }
	processCommands["readon"] = func(_ *testscript.TestScript, p *clitest.Process, _ []string) { readOn(p) }
	scriptCommands["keeper"] = func(ts *testscript.TestScript, s *script, args []string) {
		p := s.processes[args[0]]
		p.Eventually(func() bool {
			for _, child := range clitest.Children(p.Process.Pid) {
				ts.Setenv(args[0]+"_keeper", strconv.Itoa(child))
				return true
			}
			return false
		}, "no keeper")
	}
	scriptCommands["halt"] = func(ts *testscript.TestScript, s *script, args []string) {
		clitest.Halt(s.t, handle(s.t, number(ts, args[0])))
	}
	scriptCommands["lives"] = func(_ *testscript.TestScript, s *script, args []string) { s.lives(args...) }
	scriptCommands["received"] = func(_ *testscript.TestScript, s *script, args []string) {
		s.received(args[0], signals[args[1]])
	}
	scriptCommands["spared"] = func(_ *testscript.TestScript, s *script, args []string) {
		require.False(s.t, s.told(args[0], signals[args[1]]), "%s received %s", args[0], args[1])
	}
	scriptCommands["sequel"] = func(_ *testscript.TestScript, s *script, args []string) {
		s.inTurn(args[0], args[1], timeOf(s.t, object{"time": args[2]}))
	}
	scriptCommands["dead"] = func(_ *testscript.TestScript, s *script, args []string) { s.dead(args[0]) }
}

// clog fills the pipe that a descriptor reads from, as when a pager shows its first page, or a user
// has typed Ctrl-S.
func clog(t testing.TB, reader uintptr) {
	t.Helper()
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", reader), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(fd)) }()
	for filler := []byte(strings.Repeat("\n", 4096)); len(filler) > 0; {
		switch _, err := unix.Write(fd, filler); {
		case errors.Is(err, unix.EAGAIN):
			filler = filler[:len(filler)/2]
		case !errors.Is(err, unix.EINTR):
			require.NoError(t, err)
		}
	}
}

// stall stops reading the stdout of a process, and fills it.
func stall(p *clitest.Process) {
	t := p.T
	t.Helper()
	require.NoError(t, p.Out.SetReadDeadline(time.Now()))
	require.Empty(t, p.Rest())
	raw, err := p.Out.SyscallConn() // Fd would disable deadlines
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { clog(t, fd) }))
}

// readOn continues to read where stall has stopped, behind what fills the pipe.
func readOn(p *clitest.Process) {
	p.T.Helper()
	require.NoError(p.T, p.Out.SetReadDeadline(time.Time{}))
	p.Read()
}
