package offspring

import (
	"os/exec"
	"runtime"
)

// Spawner starts processes from one system thread, which lives as long as the
// spawner. The kernel ties "kill it when its parent dies" to the thread that
// started it, and Go ends threads as it likes.
type Spawner struct{ starts chan func() }

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

// Start starts cmd so that it dies with this process, where the system knows how,
// and hears no signal of the terminal but only ours.
func (s *Spawner) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = detached()
	result := make(chan error)
	s.starts <- func() { result <- cmd.Start() }
	return <-result
}

// Close must come after the end of all processes.
func (s *Spawner) Close() { close(s.starts) }
