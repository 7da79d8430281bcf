package fleet

import (
	"fmt"
	"sync"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// Fleet is a set of processes, each with a name. Its methods may be called from many goroutines.
type Fleet struct {
	run  func(peer.Program) (peer.Process, error)
	died func(error)

	mu       sync.Mutex
	members  map[string]*member
	watchers sync.WaitGroup
}

type member struct {
	program peer.Program
	process peer.Process
	ending  bool // by Kill or Close
}

// New returns a fleet without processes. The caller must Close it. died is called when a process ends by
// itself, from any goroutine; it may be nil.
func New(run func(peer.Program) (peer.Process, error), died func(error)) *Fleet {
	if died == nil {
		died = func(error) {}
	}
	return &Fleet{run: run, died: died, members: map[string]*member{}}
}

// Start starts a process. The name must be new.
func (f *Fleet) Start(name string, p peer.Program) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.start(name, p)
}

func (f *Fleet) start(name string, p peer.Program) error {
	process, err := f.run(p)
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	m := &member{program: p, process: process}
	f.members[name] = m
	f.watchers.Go(func() {
		<-process.Done()
		f.mu.Lock()
		ending := m.ending
		f.mu.Unlock()
		if !ending {
			f.died(fmt.Errorf("%s has ended by itself: %s", name, process.Output()))
		}
	})
	return nil
}

// Kill ends a process with SIGKILL, and blocks until it has ended. Restart starts it again.
func (f *Fleet) Kill(name string) error {
	process, err := f.end(name)
	if err != nil {
		return err
	}
	process.Kill()
	return nil
}

// Restart starts a process again that was killed.
func (f *Fleet) Restart(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[name]
	if !ok {
		return fmt.Errorf("no process %s", name)
	}
	return f.start(name, m.program)
}

// Close ends all processes in an orderly way, and blocks until they have ended.
func (f *Fleet) Close() error {
	f.mu.Lock()
	var all sync.WaitGroup
	for _, m := range f.members {
		m.ending = true
		all.Go(m.process.Stop)
	}
	f.mu.Unlock()
	all.Wait()
	f.watchers.Wait()
	return nil
}

func (f *Fleet) end(name string) (peer.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[name]
	if !ok {
		return nil, fmt.Errorf("no process %s", name)
	}
	m.ending = true
	return m.process, nil
}
