package offspring

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Spawner starts processes from one OS thread, which lives as long as the spawner: the kernel kills
// a process when the thread that started it ends, and Go may end threads at any time. Its methods
// may be called concurrently.
type Spawner struct {
	starts chan func()

	mu       sync.Mutex
	launched []*Process
}

// NewSpawner returns a spawner. The caller must Close it.
func NewSpawner() *Spawner {
	s := &Spawner{starts: make(chan func())}
	go func() {
		// The thread is never unlocked: it ends with this goroutine, after all the processes that
		// it started.
		runtime.LockOSThread()
		for start := range s.starts {
			start()
		}
	}()
	return s
}

// Start starts cmd so that it ends with this process, if the system supports that, and receives no
// signal of the terminal. Of cmd.SysProcAttr only the credential is kept. The caller must wait for it
// before Close.
func (s *Spawner) Start(cmd *exec.Cmd) error {
	attr := detached()
	if cmd.SysProcAttr != nil {
		attr.Credential = cmd.SysProcAttr.Credential
	}
	cmd.SysProcAttr = attr
	result := make(chan error)
	s.starts <- func() { result <- cmd.Start() }
	return <-result
}

// lastWords is how long the output of a process that has ended may take to end.
const lastWords = 200 * time.Millisecond

// Launch starts cmd and returns at once. line is called with each line of its stdout, which is
// valid during the call only, and then exited, once; all calls are made by one goroutine, in order.
// The environment omits the variables that are meant for commands of a user. The process is ended
// by End, or by Close of the spawner.
func (s *Spawner) Launch(cmd *exec.Cmd, line func([]byte), exited func(*Process)) (*Process, error) {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = lastWords // a child of the process may hold stderr
	cmd.Env = Env(os.Environ())
	if err := s.Start(cmd); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, exited: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	s.launched = append(s.launched, p)
	s.mu.Unlock()
	go func() {
		defer close(p.ended)
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			line(sc.Bytes())
		}
		_ = cmd.Wait() // the process state has more detail
		p.code = cmd.ProcessState.ExitCode()
		p.complaint = LastLine(stderr.String())
		close(p.exited) // before the call, which may wake a goroutine that waits for the result
		exited(p)
	}()
	return p, nil
}

// Close kills all processes that were launched and waits for them.
func (s *Spawner) Close() {
	s.mu.Lock()
	launched := s.launched
	s.mu.Unlock()
	for _, p := range launched {
		p.End()
	}
	close(s.starts)
}

// Process is a launched process. All methods are safe for concurrent use.
type Process struct {
	cmd *exec.Cmd
	// exited is closed when the process has ended, before Launch's exited is called; ended is
	// closed after that.
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

// Pid returns the process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Suspend stops the process with SIGSTOP, and blocks until the kernel reports that it is stopped.
// End works on a suspended process.
func (p *Process) Suspend() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return etcdtest.AwaitStopped(p.Pid())
}

// Resume continues a suspended process.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// End kills the process, in any state, and blocks until all that it has written was read. It may be
// called again.
func (p *Process) End() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}

// Alive reports whether a process, of whatever parent, exists and is no zombie. A process that has
// ended remains a zombie while its parent is stopped. It needs Linux's /proc.
func Alive(pid int) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false, nil
	}
	return err == nil && !strings.Contains(string(stat), ") Z "), err
}

// Env removes the variables that would make a child process use another etcd, or credentials that
// this etcd does not have.
func Env(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "ELDEST_") && !strings.HasPrefix(v, "ETCDCTL_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// LastLine returns the last line of a process's output, which is usually the reason.
func LastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
