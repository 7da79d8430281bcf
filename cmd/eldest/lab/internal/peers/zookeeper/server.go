package zookeeper

import (
	"context"
	"fmt"
	"sync"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// server is one server of an ensemble.
type server struct {
	configured
	run      func(peer.Program) (peer.Process, error)
	died     func(error)
	watchers *sync.WaitGroup

	mu      sync.Mutex
	process peer.Process
	// ending is whether this program has killed the process.
	ending bool
}

// start starts the process, again if it was killed.
func (s *server) start() error {
	p, err := s.run(s.program)
	if err != nil {
		return fmt.Errorf("zookeeper: server %d: %w", s.number, err)
	}
	s.mu.Lock()
	s.process, s.ending = p, false
	s.mu.Unlock()
	s.watchers.Go(func() {
		<-p.Done()
		s.mu.Lock()
		expected := s.ending
		s.mu.Unlock()
		if !expected {
			s.died(fmt.Errorf("zookeeper: server %d has ended: %s", s.number, p.Output()))
		}
	})
	return nil
}

// kill kills the process and waits until it has ended.
func (s *server) kill() {
	s.mu.Lock()
	p := s.process
	s.ending = true
	s.mu.Unlock()
	p.Kill()
}

// awaitServing waits until the server serves clients.
func (s *server) awaitServing(ctx context.Context) (status, error) {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	for {
		status, err := ask(ctx, s.address)
		if err == nil {
			return status, nil
		}
		select {
		case <-p.Done():
			return status, fmt.Errorf("zookeeper: server %d has ended: %s", s.number, p.Output())
		default:
		}
		if ended := pause(ctx, statusPause); ended != nil {
			return status, fmt.Errorf("zookeeper: server %d does not serve: %w (%w); its output: %s", s.number, ended, err, p.Output())
		}
	}
}
