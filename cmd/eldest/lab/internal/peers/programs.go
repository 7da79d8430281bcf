package peers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
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

// Programs starts the servers' processes of one system. NewPrograms makes one; it must be closed.
type Programs struct {
	spawner *offspring.Spawner
	tmp     string

	mu      sync.Mutex
	running []*program // those that were started
}

// NewPrograms returns what starts processes with a spawner, with tmp as their directory for temporary files.
func NewPrograms(spawner *offspring.Spawner, tmp string) *Programs {
	return &Programs{spawner: spawner, tmp: tmp}
}

// Run starts a process: see peer.ServerConfig.
func (p *Programs) Run(of peer.Program) (peer.Process, error) {
	cmd := exec.Command(of.Path, of.Args...)
	home := os.Getenv("HOME")
	if of.User != "" && os.Getuid() == 0 {
		account, err := user.Lookup(of.User)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", of.Path, peer.ErrMissing, err)
		}
		credential, err := credentialOf(account)
		if err != nil {
			return nil, fmt.Errorf("%s: the user %s: %w", of.Path, of.User, err)
		}
		cmd.SysProcAttr, home = &syscall.SysProcAttr{Credential: credential}, account.HomeDir
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + p.tmp, "LANG=C.UTF-8"}, of.Env...)
	cmd.Dir = of.Dir
	s := &program{cmd: cmd, done: make(chan struct{}), output: &tail{}}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = s.output, s.output, lastWords
	if err := p.spawner.Start(cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.done)
		_ = cmd.Wait() // how servers end is of no interest to the run: their adapters wait for Done
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, s)
	return s, nil
}

// credentialOf returns what a process of a user needs.
func credentialOf(account *user.User) (*syscall.Credential, error) {
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// Close kills all processes that are left.
func (p *Programs) Close() {
	p.mu.Lock()
	running := p.running
	p.mu.Unlock()
	for _, s := range running {
		s.Kill()
	}
}

// program is a peer.Process.
type program struct {
	cmd    *exec.Cmd
	done   chan struct{}
	output *tail
}

func (s *program) Pid() int              { return s.cmd.Process.Pid }
func (s *program) Done() <-chan struct{} { return s.done }
func (s *program) Output() string        { return s.output.String() }

// Kill kills the process and those of its group.
func (s *program) Kill() {
	select {
	case <-s.done: // another process may have its ID by now
		return
	default:
	}
	_ = syscall.Kill(-s.Pid(), syscall.SIGKILL) // it may have ended already
	<-s.done
}

func (s *program) Stop() { s.stop(syscall.SIGTERM) }

func (s *program) stop(sig os.Signal) {
	_ = s.cmd.Process.Signal(sig) // it may have ended already
	select {
	case <-s.done:
	case <-time.After(patience):
		s.Kill()
	}
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
