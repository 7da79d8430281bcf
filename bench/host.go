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
	Open(ctx context.Context, contender string, ttl time.Duration) (contender.Session, error)
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

func (l *local) Open(ctx context.Context, name string, ttl time.Duration) (contender.Session, error) {
	c, err := contender.Named(name)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, l.client, ttl)
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
