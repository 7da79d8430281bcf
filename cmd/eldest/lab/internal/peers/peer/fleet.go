package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

// Ports are taken from below the range that operating systems use for outgoing connections (Linux: 32768
// and up), so that no connection takes the port of a server that is down.
const (
	firstPort = 20000
	lastPort  = 31999
)

// Fleet has the processes of a system's servers, each with a name, and their ports. NewFleet makes one; it must be
// closed. Its methods may be called from many goroutines.
type Fleet struct {
	spawner *offspring.Spawner
	died    func(error)

	mu        sync.Mutex
	processes map[string]*process
	claims    []net.Listener
	watchers  sync.WaitGroup
}

// NewFleet returns a fleet whose processes a spawner starts. died is called when one ends by itself, from any
// goroutine.
func NewFleet(spawner *offspring.Spawner, died func(error)) *Fleet {
	return &Fleet{spawner: spawner, died: died, processes: map[string]*process{}}
}

// Ports returns n free ports of 127.0.0.1. On Linux a name in the abstract socket namespace, which ends with this
// process, reserves each until Close; elsewhere a collision is possible and unlikely.
func (f *Fleet) Ports(n int) (ports []int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if runtime.GOOS == "linux" {
			claim, err := net.Listen("unix", fmt.Sprintf("@eldest-peers-%d", port))
			if err != nil {
				continue // it is reserved
			}
			f.claims = append(f.claims, claim) // also if the port is in use: it is not tried again
		}
		if free, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil && free.Close() == nil {
			ports = append(ports, port)
		}
	}
	return nil, errors.New("no free ports on 127.0.0.1")
}

// Do runs a program to its end, and returns what it has written. If ctx ends first, it kills the process.
func (f *Fleet) Do(ctx context.Context, p Program) (output string, err error) {
	s, err := launch(f.spawner, p)
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, s.kill)()
	<-s.over.Done()
	if !s.cmd.ProcessState.Success() {
		return "", errors.Join(context.Cause(ctx), fmt.Errorf("%s: %v: %s", p.Path, s.cmd.ProcessState, s.output))
	}
	return s.output.String(), nil
}

// Start starts a process, whose name is new or that of one that was killed.
func (f *Fleet) Start(name string, p Program) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.start(name, p)
}

func (f *Fleet) start(name string, p Program) error {
	s, err := launch(f.spawner, p)
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	f.processes[name] = s
	f.watchers.Go(func() {
		<-s.over.Done()
		f.mu.Lock()
		ending := s.ending
		f.mu.Unlock()
		if !ending {
			f.died(fmt.Errorf("%s has ended by itself: %s", name, s.output))
		}
	})
	return nil
}

// named returns a process that was started.
func (f *Fleet) named(name string) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.processes[name]
}

// Await calls serves until it succeeds, the process ends, or ctx does.
func (f *Fleet) Await(ctx context.Context, name string, serves func(context.Context) error) error {
	s := f.named(name)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.over, func() { cancel(errors.New("it has ended")) })()
	if err := Retry(ctx, serves); err != nil {
		return fmt.Errorf("%s does not serve: %w; its output: %s", name, err, s.output)
	}
	return nil
}

// KillLeader kills the process that leader names with SIGKILL. It returns the time just before the signal, and what
// starts the process again and waits until it serves. leader is called until it succeeds.
func (f *Fleet) KillLeader(ctx context.Context, leader func(context.Context) (name string, err error), serves func(ctx context.Context, name string) error) (
	killed time.Time, restart func(context.Context) error, err error,
) {
	var name string
	if err := Retry(ctx, func(ctx context.Context) (err error) {
		name, err = leader(ctx)
		return err
	}); err != nil {
		return killed, nil, fmt.Errorf("no server leads the others: %w", err)
	}
	s := f.named(name)
	f.mu.Lock()
	s.ending = true
	f.mu.Unlock()
	killed = time.Now()
	s.kill()
	return killed, func(ctx context.Context) error {
		if err := f.Start(name, s.program); err != nil {
			return err
		}
		return f.Await(ctx, name, func(ctx context.Context) error { return serves(ctx, name) })
	}, nil
}

// Close ends all processes, and blocks until they have ended. They are killed unless Program.Signal is set: their data
// is removed next.
func (f *Fleet) Close() {
	f.mu.Lock()
	for _, s := range f.processes {
		s.ending = true
		f.watchers.Go(s.end)
	}
	for _, claim := range f.claims {
		_ = claim.Close() // it has accepted no connection
	}
	f.mu.Unlock()
	f.watchers.Wait()
}
