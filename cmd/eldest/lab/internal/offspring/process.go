package offspring

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Process is one that was launched. All methods are safe for concurrent use.
type Process struct {
	cmd *exec.Cmd
	// exited is closed when the process is gone, before the call of Launch's exited; ended
	// after that.
	exited, ended chan struct{}
	code          int
	complaint     string
}

// Gone reports whether the process has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Result returns the exit code, -1 after a signal, and the last line of stderr. It blocks until
// the process has ended.
func (p *Process) Result() (code int, complaint string) {
	<-p.exited
	return p.code, p.complaint
}

// Pid is the process's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Suspend stops the process with SIGSTOP, and blocks until the kernel says that it is stopped.
// End works on a suspended process.
func (p *Process) Suspend() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return etcdtest.AwaitStopped(p.Pid())
}

// Resume lets a suspended process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// End kills the process, whatever it is doing, and blocks until all that it has written was
// read. It may be called again.
func (p *Process) End() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}

// Code is the exit code of an error of Wait, -1 after a signal.
func Code(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// Env leaves out the variables that would make a process of ours use another etcd, or
// credentials that ours does not know.
func Env(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "ELDEST_") && !strings.HasPrefix(v, "ETCDCTL_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// LastLine is the last line of what a process wrote: mostly the reason.
func LastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
