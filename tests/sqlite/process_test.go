package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// process is one node.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
	done  chan struct{}

	mu   sync.Mutex
	said strings.Builder // both streams
}

// Write stores what the process writes to stderr.
func (p *process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(data)
}

// start runs the program; it is killed when the test ends.
func start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...), lines: make(chan string, 10000), done: make(chan struct{})}
	p.cmd.Stderr = p
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			_, _ = fmt.Fprintln(p, scanner.Text())
			select {
			case p.lines <- scanner.Text():
			default: // the test does not read this node's output any more
			}
		}
		close(p.lines)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // SIGKILL also ends a stopped process
		<-p.done
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("%q said\n%s", args, p.said.String())
		}
	})
	return p
}

// until waits for a line that matches and returns its first group.
func (p *process) until(pattern string) string {
	p.t.Helper()
	expression, limit := regexp.MustCompile(pattern), time.After(etcdtest.Patience)
	for {
		select {
		case line, ok := <-p.lines:
			require.True(p.t, ok, "it ended and did not say %q", pattern)
			if match := expression.FindStringSubmatch(line); match != nil {
				return match[1]
			}
		case <-limit:
			require.FailNow(p.t, "it did not say "+pattern)
		}
	}
}

func (p *process) enter() {
	p.t.Helper()
	_, err := io.WriteString(p.stdin, "\n")
	require.NoError(p.t, err)
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// stop stops the process and returns when it is stopped.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	require.Eventually(p.t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err == nil && strings.HasPrefix(state, "T")
	}, etcdtest.Patience, time.Millisecond)
}

// ends waits until the process has ended.
func (p *process) ends(code int) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(etcdtest.Patience):
		require.FailNow(p.t, "it does not end")
	}
	require.Equal(p.t, code, p.cmd.ProcessState.ExitCode())
}
