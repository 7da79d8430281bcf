package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

// The limits of a server's process.
const (
	// patience is how long it may take to end after a signal.
	patience = 10 * time.Second
	// lastWords is how long the output of a process that has ended may take to end: children may hold it.
	lastWords = 200 * time.Millisecond
	// maxOutput is how much of the output is kept.
	maxOutput = 16 << 10
)

// Program is a program of a server.
type Program struct {
	Path string
	Args []string
	Env  []string // appended to a minimal environment: PATH, HOME, TMPDIR, LANG
	// Dir is the working directory, and that of temporary files.
	Dir string
	// User is the name of the system's user that runs it and owns Dir, if this process is root; "" means no other.
	User string
	// Signal ends a process that may not simply be killed; 0 means none.
	Signal syscall.Signal
}

// process is a program that was started, by this process, with which it ends at the latest.
type process struct {
	program Program
	cmd     *exec.Cmd
	output  *tail
	over    context.Context // ended when the process has
	ending  bool            // by the fleet, which guards it
}

// launch starts a process.
func launch(spawner *offspring.Spawner, p Program) (*process, error) {
	cmd := exec.Command(p.Path, p.Args...)
	home := os.Getenv("HOME")
	if p.User != "" && os.Getuid() == 0 {
		account, err := user.Lookup(p.User)
		if err != nil {
			return nil, fmt.Errorf("%s: the user %s is %w: %w", p.Path, p.User, ErrMissing, err)
		}
		uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(err1, err2, os.Chown(p.Dir, int(uid), int(gid))); err != nil {
			return nil, fmt.Errorf("%s: the user %s: %w", p.Path, p.User, err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		home = account.HomeDir
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + p.Dir, "LANG=C.UTF-8"}, p.Env...)
	cmd.Dir = p.Dir
	over, end := context.WithCancel(context.Background())
	s := &process{program: p, cmd: cmd, output: &tail{}, over: over}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = s.output, s.output, lastWords
	if err := spawner.Start(cmd); err != nil {
		end()
		return nil, err
	}
	go func() {
		defer end()
		_ = cmd.Wait() // its state has the result
	}()
	return s, nil
}

// kill kills the process and those of its group, and waits for it.
func (s *process) kill() {
	if s.over.Err() == nil { // else another process may have its ID by now
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
	}
	<-s.over.Done()
}

// end ends the process in the way that its program requires.
func (s *process) end() {
	if s.program.Signal != 0 {
		_ = s.cmd.Process.Signal(s.program.Signal) // it may have ended already
		select {
		case <-s.over.Done():
		case <-time.After(patience):
		}
	}
	s.kill()
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if n := len(t.kept); n > 2*maxOutput {
		t.kept = append([]byte(nil), t.kept[n-maxOutput:]...)
	}
	return len(b), nil
}

// String returns the last part.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept[max(0, len(t.kept)-maxOutput):])
}
