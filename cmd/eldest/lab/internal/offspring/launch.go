package offspring

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
)

// Process is one that was launched. All methods are safe for concurrent use.
type Process struct {
	cmd *exec.Cmd
	// exited is closed when the process is gone, before that is told; ended when
	// everything is told.
	exited, ended chan struct{}
	code          int
	complaint     string
}

// Launch starts cmd and returns without waiting for what it says. line is called with
// each line of its stdout, which is valid during the call only, and then exited, once,
// from one goroutine, in order. The process has an environment without what is meant
// for commands of a user. The caller must End it.
func (s *Spawner) Launch(cmd *exec.Cmd, line func([]byte), exited func(*Process)) (*Process, error) {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = Env(os.Environ())
	if err := s.Start(cmd); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, exited: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			line(sc.Bytes())
		}
		p.code = Code(cmd.Wait())
		p.complaint = LastLine(stderr.String())
		close(p.exited) // first, for whoever is woken by what is told
		exited(p)
	}()
	return p, nil
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

// Result is the exit code, -1 after a signal, and the end of what was written to
// stderr. It blocks until the process has ended.
func (p *Process) Result() (code int, complaint string) {
	<-p.exited
	return p.code, p.complaint
}

// Pid is the process's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// End kills the process, whatever it is doing, and waits until everything is told.
func (p *Process) End() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}
