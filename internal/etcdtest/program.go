package etcdtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Program is a program that a test runs beside itself. Its methods may be called from many goroutines,
// except Line.
type Program struct {
	Cmd *exec.Cmd
	// Lines receives the lines of its stdout, and is closed at their end. Lines that no test reads are
	// dropped.
	Lines <-chan string
	// Done is closed when it has ended; then Cmd.ProcessState is set.
	Done <-chan struct{}

	t     testing.TB
	stdin io.WriteCloser
	said  Paper
}

// Run starts cmd. The program is killed when the test ends, or dies. Its output is logged if the test
// has failed.
func Run(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	lines, done := make(chan string, 1<<14), make(chan struct{})
	p := &Program{Cmd: cmd, Lines: lines, Done: done, t: t}
	cmd.Stderr = &p.said
	stdin, err := cmd.StdinPipe()
	if err == nil {
		p.stdin = stdin
		err = spawn(cmd, func(line []byte) {
			_, _ = fmt.Fprintf(&p.said, "%s\n", line)
			select {
			case lines <- string(line):
			default:
			}
		}, func(error) {
			close(lines)
			close(done)
		})
	}
	if err != nil {
		t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended; it ends a stopped process as well
		<-done
		if t.Failed() {
			t.Logf("%q wrote\n%s", cmd.Args, p.Said())
		}
	})
	return p
}

// Said is what the program has written so far to stdout and stderr.
func (p *Program) Said() string { return p.said.String() }

// Line waits for a line of stdout that matches, and returns the match and its groups. It skips others.
func (p *Program) Line(pattern string) []string {
	p.t.Helper()
	for expression, limit := regexp.MustCompile(pattern), time.After(Patience); ; {
		select {
		case line, open := <-p.Lines:
			if !open {
				p.t.Fatalf("the program has ended, and has not written %q", pattern)
			}
			if match := expression.FindStringSubmatch(line); match != nil {
				return match
			}
		case <-limit:
			p.t.Fatalf("not in time: a line %q", pattern)
		}
	}
}

// Send writes a line to its stdin.
func (p *Program) Send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("writing to %s: %v", p.Cmd.Path, err)
	}
}

// Signal sends a signal to it. Signal returns when a program that it stops has stopped.
func (p *Program) Signal(sig os.Signal) {
	p.t.Helper()
	err := p.Cmd.Process.Signal(sig)
	if err == nil && sig == syscall.SIGSTOP {
		err = AwaitStopped(p.Cmd.Process.Pid)
	}
	if err != nil {
		p.t.Fatalf("signal %v to %s: %v", sig, p.Cmd.Path, err)
	}
}

// CloseInput ends its stdin.
func (p *Program) CloseInput() { _ = p.stdin.Close() } // it may have ended

// End waits until it has ended, and returns its exit code.
func (p *Program) End() int {
	p.t.Helper()
	Take(p.t, p.Done, "the end of "+p.Cmd.Path)
	return p.Cmd.ProcessState.ExitCode()
}

// spawn starts cmd as a child that the kernel kills when this process dies. It calls line with each line
// of its stdout, and ended with the result of Wait, on one goroutine.
func spawn(cmd *exec.Cmd, line func([]byte), ended func(error)) error {
	cmd.SysProcAttr = childAttr()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child when the thread that forked it ends, not when the process
		// does. Therefore this goroutine keeps the thread until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			line(lines.Bytes())
		}
		_, _ = io.Copy(io.Discard, stdout) // after a line that is too long: the child must not wait for a reader
		ended(cmd.Wait())
	}()
	return <-started
}
