package offspring

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// Spawner starts processes from one system thread, which lives as long as the spawner: the
// kernel ties "kill it when its parent dies" to the thread that started it, and Go ends threads
// as it likes. Its methods may be called from many goroutines.
type Spawner struct {
	starts chan func()

	mu       sync.Mutex
	launched []*Process
}

// NewSpawner returns a spawner. The caller must Close it.
func NewSpawner() *Spawner {
	s := &Spawner{starts: make(chan func())}
	go func() {
		// Never unlocked: the thread ends with this goroutine, after all the
		// processes that it started.
		runtime.LockOSThread()
		for start := range s.starts {
			start()
		}
	}()
	return s
}

// Start starts cmd so that it dies with this process, where the system can do that, and
// receives no signal of the terminal. The caller must wait for it before Close.
func (s *Spawner) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = detached()
	result := make(chan error)
	s.starts <- func() { result <- cmd.Start() }
	return <-result
}

// Launch starts cmd and returns at once. line is called with each line of its stdout, which is
// valid during the call only, and then exited, once; all calls are made by one goroutine, in
// order. The variables of the environment that are meant for commands of a user are left out.
// The process is ended by End, or by Close of the spawner.
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
	s.mu.Lock()
	s.launched = append(s.launched, p)
	s.mu.Unlock()
	go func() {
		defer close(p.ended)
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			line(sc.Bytes())
		}
		p.code = Code(cmd.Wait())
		p.complaint = LastLine(stderr.String())
		close(p.exited) // before the call, which may wake a goroutine that asks for the result
		exited(p)
	}()
	return p, nil
}

// Close kills all processes that were launched and waits for them.
func (s *Spawner) Close() {
	for _, p := range s.launched {
		p.End()
	}
	close(s.starts)
}
