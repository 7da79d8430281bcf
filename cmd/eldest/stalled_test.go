//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// clog fills the pipe that a descriptor reads from, as it is when a pager shows its first page, or
// somebody has typed Ctrl-S.
func clog(t *testing.T, reader uintptr) {
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
	t := p.T.(*testing.T)
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

// Whoever stops reading its lines does not keep a leader from leaving: it hands over, and
// stands again. What it did is told when somebody reads again, in order.
//
// Fails when a line is waited for before the key is removed.
func TestCampaignHandsOverThoughNobodyReads(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, led := etcd.leading("svc", "A")
	b, second := etcd.waiting("svc", "B")
	etcd.partakes("svc", 2)
	stall(a)
	code, _, stderr := etcd.line("transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Equal(t, second["token"], b.Event("leader")["token"])
	require.Equal(t, []string{"B", "A"}, values(etcd.partakes("svc", 2)), "it stands again")

	readOn(a)
	require.Equal(t, led["token"], a.Event("retired")["token"])
	require.Equal(t, led["token"], a.Event("resigned")["token"])
	require.Equal(t, second["key"], a.Event("registered")["predecessor"])
	a.Event("waiting")
	a.Signal(syscall.SIGTERM)
	a.Event("resigned")
	a.Exits(cli.ExitOK)
	require.Empty(t, a.Errors())
	b.Signal(syscall.SIGTERM)
	b.Event("resigned")
	b.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
}

// A signal ends it within its limits, the key and the lease are gone, and nothing is said
// that is not so.
//
// Fails when the candidate's hooks wait for the reader: then leaving takes all of
// --command-timeout, and the last line is waited for without limit.
func TestCampaignEndsThoughNobodyReads(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, _ := etcd.leading("svc", "--command-timeout", "1m")
	b, _ := etcd.waiting("svc", "--command-timeout", "1m")
	for _, p := range []*clitest.Process{b, a} {
		stall(p)
		p.Signal(syscall.SIGTERM)
		p.Over()
		require.Equal(t, cli.ExitOK, p.ProcessState.ExitCode())
		require.Empty(t, p.Errors())
	}
	require.Empty(t, etcd.keys())
	require.Zero(t, etcd.leases())
}

// So does a node of a service.
func TestServiceNodeEndsThoughNobodyReads(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	p, _ := etcd.node("a")
	becomes(p, "leading")
	stall(p)
	p.Signal(syscall.SIGTERM)
	p.Over()
	require.Equal(t, cli.ExitOK, p.ProcessState.ExitCode(), p.Errors())
	require.Empty(t, p.Errors())
	require.Zero(t, etcd.leases())
}

// And "eldest run", whose lines are on stderr.
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
	code, _, stderr := etcd.line("transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	require.Equal(t, cli.ExitOK, code, stderr)
	p.Exits(cli.ExitOK) // it has handed over, and does not restart
	require.Len(t, etcd.standing(), 1)
}
