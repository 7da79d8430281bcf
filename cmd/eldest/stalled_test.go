//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() {
	systemCommands["stall"] = func(ts *testscript.TestScript, _ bool, args []string) { stall(of(ts).processes[args[0]].Process) }
	systemCommands["readon"] = func(ts *testscript.TestScript, _ bool, args []string) { readOn(of(ts).processes[args[0]].Process) }
}

// clog fills the pipe that a descriptor reads from, as it is when a pager shows its first page, or
// somebody has typed Ctrl-S.
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

// stall has nobody read the stdout of a process any more, and fills it.
func stall(p *clitest.Process) {
	t := p.T
	t.Helper()
	require.NoError(t, p.Out.SetReadDeadline(time.Now()))
	for line := range p.Lines {
		assert.Fail(t, "one more line", line)
	}
	raw, err := p.Out.SyscallConn() // Fd would put an end to deadlines
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { clog(t, fd) }))
}

// readOn reads on where stall has stopped, behind what fills the pipe.
func readOn(p *clitest.Process) {
	p.T.Helper()
	require.NoError(p.T, p.Out.SetReadDeadline(time.Time{}))
	stop := p.Read()
	p.T.Cleanup(func() {
		_ = p.Process.Kill()
		stop()
	})
	full := p.Lines
	lines := make(chan string, cap(full))
	p.Lines = lines
	go func() {
		defer close(lines)
		for line := range full {
			if line != "\n" {
				lines <- line
			}
		}
	}()
}

// A reader that does not read keeps "eldest run", whose lines are on stderr, from nothing (for the
// other commands see stalled.txtar).
func TestRunEndsThoughNobodyReads(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	clog(t, reader.Fd())
	cmd := etcd.command("run", "svc", "--ttl", "30s", "--command-timeout", "1m", "--", "sleep", "1000")
	cmd.Stderr = writer
	p := clitest.Start(t, cmd)
	require.NoError(t, writer.Close())
	etcd.partakes("svc", 1)
	_, second := etcd.waiting("svc", "B")
	etcd.does("transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	p.Exits(cli.ExitOK) // it has handed over, and does not restart
	require.Len(t, etcd.standing(), 1)
}
