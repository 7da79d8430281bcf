package demo

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one system thread, which lives as long as the
// spawner. The kernel ties "kill it when its parent dies" to the thread that
// started it, and Go ends threads as it likes.
type spawner struct{ starts chan func() }

func newSpawner() *spawner {
	s := &spawner{starts: make(chan func())}
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

// start starts cmd so that it dies with this process, where the system knows how,
// and hears no signal of the terminal but only ours.
func (s *spawner) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = detached()
	result := make(chan error)
	s.starts <- func() { result <- cmd.Start() }
	return <-result
}

// close must come after the end of all processes.
func (s *spawner) close() { close(s.starts) }
