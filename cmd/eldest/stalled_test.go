//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

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
func (p *process) stall() {
	p.t.Helper()
	require.NoError(p.t, p.stdout.SetReadDeadline(time.Now()))
	for line := range p.lines {
		assert.Fail(p.t, "one more line", line)
	}
	raw, err := p.stdout.SyscallConn() // Fd would put an end to deadlines
	require.NoError(p.t, err)
	require.NoError(p.t, raw.Control(func(fd uintptr) { clog(p.t, fd) }))
}

// read reads on where stall has stopped.
func (p *process) read() {
	p.t.Helper()
	require.NoError(p.t, p.stdout.SetReadDeadline(time.Time{}))
	lines := make(chan string, 1000)
	p.lines = lines
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(lines)
		for r := bufio.NewReader(p.stdout); ; {
			line, err := r.ReadString('\n')
			if len(line) > 1 {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	p.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-done
	})
}

// Whoever stops reading its lines does not keep a leader from leaving: it hands over, and
// stands again. What it did is told when somebody reads again, in order.
//
// Fails when a line is waited for before the key is removed.
func TestCampaignHandsOverThoughNobodyReads(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	a, led := leading(t, "svc", "A")
	b, second := waiting(t, "svc", "B")
	partakes(t, "svc", 2)
	a.stall()
	code, _, stderr := runLine(t, "transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, second["token"], b.event("leader")["token"])
	require.Equal(t, []string{"B", "A"}, values(partakes(t, "svc", 2)), "it stands again")

	a.read()
	require.Equal(t, led["token"], a.event("retired")["token"])
	require.Equal(t, led["token"], a.event("resigned")["token"])
	require.Equal(t, second["key"], a.event("registered")["predecessor"])
	a.event("waiting")
	a.signal(syscall.SIGTERM)
	a.event("resigned")
	a.exits(exitOK)
	require.Empty(t, a.errors())
	b.signal(syscall.SIGTERM)
	b.event("resigned")
	b.exits(exitOK)
	require.Empty(t, etcd.keys())
}

// A signal ends it within its limits, the key and the lease are gone, and nothing is said
// that is not so.
//
// Fails when the candidate's hooks wait for the reader: then leaving takes all of
// --command-timeout, and the last line is waited for without limit.
func TestCampaignEndsThoughNobodyReads(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	a, _ := leading(t, "svc", "--command-timeout", "1m")
	b, _ := waiting(t, "svc", "--command-timeout", "1m")
	for _, p := range []*process{b, a} {
		p.stall()
		p.signal(syscall.SIGTERM)
		p.over()
		require.Equal(t, exitOK, p.cmd.ProcessState.ExitCode())
		require.Empty(t, p.errors())
	}
	require.Empty(t, etcd.keys())
	require.Zero(t, etcd.leases())
}

// So does a node of a service.
func TestServiceNodeEndsThoughNobodyReads(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	p, _ := serviceNode(t, "a")
	p.becomes("leading")
	p.stall()
	p.signal(syscall.SIGTERM)
	p.over()
	require.Equal(t, exitOK, p.cmd.ProcessState.ExitCode(), p.errors())
	require.Empty(t, p.errors())
	require.Zero(t, etcd.leases())
}

// And "eldest run", whose lines are on stderr.
func TestRunEndsThoughNobodyReads(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	clog(t, reader.Fd())
	parent, ours, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = ours.Close() }()
	cmd := exec.Command(os.Args[0], "run", "svc", "--ttl", "30s", "--command-timeout", "1m", "--", "sleep", "1000")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr, cmd.ExtraFiles = writer, []*os.File{parent}
	require.NoError(t, cmd.Start())
	_, _ = parent.Close(), writer.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	partakes(t, "svc", 1)
	_, second := waiting(t, "svc", "B")
	code, _, stderr := runLine(t, "transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	require.Equal(t, exitOK, code, stderr)
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(t, "it does not end")
	}
	require.Equal(t, exitOK, cmd.ProcessState.ExitCode(), "it has handed over, and does not restart")
	require.Len(t, etcd.standing(), 1)
}
