package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
)

// Host is where candidates and observers live: this process, or a worker. All methods
// may be called from many goroutines.
type Host interface {
	// Open starts a session of the named contender; see contender.Contender.
	Open(ctx context.Context, contender string, ttl time.Duration) (Session, error)
	// Observe gathers a crowd of observers of the named contender, and blocks until
	// they have seen who leads, which somebody should.
	Observe(ctx context.Context, contender, election string, size CrowdSize) (Crowd, error)
	// Wire is what the host's client has sent and was told so far.
	Wire(ctx context.Context) (Wire, error)
	// Shift sends so many cheap reads, by each of which the client, which asks the
	// members in turn, moves on to the next.
	Shift(ctx context.Context, by int) error
	// Cut takes the host's network away, or gives it back.
	Cut(ctx context.Context, cut bool) error
	// Kill ends the host as SIGKILL does. One that is not a process cannot be
	// killed: the error wraps errors.ErrUnsupported.
	Kill() error
	// Close ends the host. Sessions on it must have been closed.
	Close() error
}

// Session is a contender's session on a host.
type Session interface {
	// Candidate makes a candidate, which is not registered yet.
	Candidate(election, value string) (Candidate, error)
	// Close is that of contender.Session; where etcd does not confirm it in time, no
	// further attempts are made: the run may be over, and its client with it.
	Close(ctx context.Context) error
}

// Candidate is a contender's candidate on a host, and its tenure once it leads. Times are
// those of the host, where things happen.
type Candidate interface {
	// Campaign blocks until the candidate leads, and returns when the contender's own
	// call came back.
	Campaign(ctx context.Context) (won time.Time, err error)
	// Key and Resign are those of the tenure.
	Key() string
	Resign(ctx context.Context) error
	// Lost delivers, once, when the contender's user was notified that the tenure is
	// over. nil if the contender never notifies.
	Lost() <-chan time.Time
	// Put writes under the protection of the tenure. What is written goes with the
	// session: nothing that was measured stays behind, however the run ends.
	Put(ctx context.Context, key, value string) error
}

// local is a host in this process: one client.
type local struct {
	client *clientv3.Client
	meter  *meter
	line   *line
}

func newLocal(site Site) (*local, error) {
	l := &local{meter: &meter{}, line: newLine()}
	var err error
	l.client, err = site.dial(append(l.meter.options(), l.line.option())...)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *local) Open(ctx context.Context, name string, ttl time.Duration) (Session, error) {
	c, err := contender.Named(name)
	if err != nil {
		return nil, err
	}
	s, err := c.Open(ctx, l.client, ttl)
	if err != nil {
		return nil, err
	}
	return localSession{s}, nil
}

type localSession struct{ contender.Session }

func (s localSession) Candidate(election, value string) (Candidate, error) {
	c, err := s.Session.Candidate(election, value)
	if err != nil {
		return nil, err
	}
	return &localCandidate{candidate: c, lease: s.Lease()}, nil
}

func (s localSession) Close(ctx context.Context) error {
	err := s.Session.Close(ctx)
	if err != nil {
		s.Abandon()
	}
	return err
}

type localCandidate struct {
	candidate        contender.Candidate
	contender.Tenure // since its win
	lease            clientv3.LeaseID
}

func (c *localCandidate) Campaign(ctx context.Context) (time.Time, error) {
	t, err := c.candidate.Campaign(ctx)
	won := time.Now()
	c.Tenure = t
	return won, err
}

func (c *localCandidate) Lost() <-chan time.Time {
	if c.Context().Done() == nil {
		return nil
	}
	lost := make(chan time.Time, 1)
	context.AfterFunc(c.Context(), func() { lost <- time.Now() })
	return lost
}

func (c *localCandidate) Put(ctx context.Context, key, value string) error {
	_, err := c.Do(ctx, clientv3.OpPut(key, value, clientv3.WithLease(c.lease)))
	return err
}

func (l *local) Wire(context.Context) (Wire, error) { return l.meter.read(), nil }

func (l *local) Shift(ctx context.Context, by int) error {
	for range by {
		_, err := l.client.Get(ctx, "eldest-bench", clientv3.WithSerializable(), clientv3.WithCountOnly())
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *local) Cut(_ context.Context, cut bool) error {
	l.line.set(cut)
	return nil
}

func (l *local) Kill() error {
	return fmt.Errorf("a host in this process cannot be killed: %w", errors.ErrUnsupported)
}

func (l *local) Close() error {
	l.line.set(false)
	return l.client.Close()
}
