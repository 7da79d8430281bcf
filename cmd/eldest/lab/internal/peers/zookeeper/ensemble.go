package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// size is the number of servers.
const size = 3

// statusPause is how long nothing is asked after servers that do not serve yet.
const statusPause = 50 * time.Millisecond

// ensemble is a running ensemble.
type ensemble struct {
	servers []*server
	version string
	writes  writes
	// watchers wait for the processes.
	watchers sync.WaitGroup
}

// start starts an ensemble.
func start(ctx context.Context, cfg peer.ServerConfig) (_ peer.Servers, err error) {
	programs, err := configure(cfg)
	if err != nil {
		return nil, err
	}
	e := &ensemble{}
	defer func() {
		if err != nil {
			_ = e.Close() // it ends processes and has no errors
		}
	}()
	for _, p := range programs {
		s := &server{configured: p, run: cfg.Run, died: cfg.Died, watchers: &e.watchers}
		if err := s.start(); err != nil {
			return nil, err
		}
		e.servers = append(e.servers, s)
	}
	// All must serve, not only a majority: otherwise the first measurements would compete with the start of the last one.
	for _, s := range e.servers {
		status, err := s.awaitServing(ctx)
		if err != nil {
			return nil, err
		}
		e.version = "ZooKeeper " + status.version
	}
	return e, nil
}

func (e *ensemble) Version() string { return e.version }

func (e *ensemble) Nodes() int { return len(e.servers) }

// Endpoints are the addresses for clients.
func (e *ensemble) Endpoints() []string {
	var all []string
	for _, s := range e.servers {
		all = append(all, s.address)
	}
	return all
}

// Writes counts transactions: each has a number, the zxid, and an entry in the servers' logs. A multi request is one.
func (e *ensemble) Writes(ctx context.Context) (int64, error) {
	_, status, err := e.leader(ctx)
	if err != nil {
		return 0, err
	}
	return e.writes.total(status.zxid), nil
}

// KillLeader kills the leader of the ensemble.
func (e *ensemble) KillLeader(ctx context.Context) (killed time.Time, restart func(context.Context) error, err error) {
	s, _, err := e.leader(ctx)
	if err != nil {
		return killed, nil, err
	}
	killed = time.Now()
	s.kill()
	return killed, func(ctx context.Context) error {
		if err := s.start(); err != nil {
			return err
		}
		_, err := s.awaitServing(ctx)
		return err
	}, nil
}

// leader returns the server that leads the ensemble, and waits for one.
func (e *ensemble) leader(ctx context.Context) (*server, status, error) {
	for {
		var problems []error
		for _, s := range e.servers {
			status, err := ask(ctx, s.address)
			if err == nil && status.mode == "leader" {
				return s, status, nil
			}
			problems = append(problems, err)
		}
		if err := pause(ctx, statusPause); err != nil {
			return nil, status{}, fmt.Errorf("zookeeper: no server leads the ensemble: %w", errors.Join(append(problems, err)...))
		}
	}
}

// Close ends all servers. They are killed: their data is deleted after this.
func (e *ensemble) Close() error {
	for _, s := range e.servers {
		s.kill()
	}
	e.watchers.Wait()
	return nil
}

// writes adds up the transactions of several leaders.
type writes struct {
	mu   sync.Mutex
	last int64
	sum  int64
}

// total returns the number of transactions until a zxid. Its high half is the number of the leader's epoch, its
// low half counts from 0 within an epoch.
func (w *writes) total(zxid int64) int64 {
	const half = 32
	w.mu.Lock()
	defer w.mu.Unlock()
	if zxid>>half == w.last>>half {
		w.sum += zxid - w.last
	} else {
		w.sum += zxid & (1<<half - 1)
	}
	w.last = zxid
	return w.sum
}

// pause blocks for a while, or until ctx ends, and then returns why.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
