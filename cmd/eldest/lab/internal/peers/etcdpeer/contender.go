package etcdpeer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/retry"
)

// client is the client of a participant that uses a contender of package bench. Each of its candidates has a
// session of its own: a session has one key in an election.
type client struct {
	*connection
	ttl time.Duration // of the sessions
	// of returns the contender of one campaign, which may call queued when its candidate is.
	of func(queued func()) contender.Contender
	// refusals are the errors of Tenure.Do which mean that the leader leads no more.
	refusals []error
	// sight is that of all observers of this process, from the first one on.
	sight func() (contender.Sight, error)
}

func newClient(c *connection, ttl time.Duration, of func(queued func()) contender.Contender, refusals ...error) *client {
	return &client{connection: c, ttl: ttl, of: of, refusals: refusals, sight: sync.OnceValues(func() (contender.Sight, error) {
		sight, err := of(nil).Sight(c.life, c.etcd, c.cfg.Election)
		if err == nil {
			c.life.AtEnd(sight.Close)
		}
		return sight, err
	})}
}

// Campaign may block, if ctx ends while etcd does not answer, until the client is closed: etcd's package deletes its
// key first.
func (c *client) Campaign(ctx context.Context, id string, queued func()) (peer.Tenure, error) {
	session, err := c.of(queued).Open(ctx, c.etcd, c.ttl)
	if err != nil {
		return nil, err
	}
	t := &tenure{client: c, session: session, over: make(chan struct{})}
	c.life.AtEnd(func(ctx context.Context) { _ = t.close(ctx) }) // on an error the lease expires
	candidate, err := session.Candidate(c.cfg.Election, id)
	if err == nil {
		t.Tenure, err = candidate.Campaign(context.WithValue(ctx, queuedKey{}, &predecessor{queued: queued}))
	}
	if err != nil {
		return nil, err
	}
	c.life.Go(func() { t.follow(candidate) })
	return t, nil
}

// Observe begins again when a watch has ended.
func (c *client) Observe(ctx context.Context, leads func(id string)) error {
	sight, err := c.sight()
	if err != nil {
		return err
	}
	for told := ""; ctx.Err() == nil; _ = retry.Sleep(ctx, 100*time.Millisecond) {
		feed, err := sight.Feed(ctx)
		for err == nil {
			var leader contender.Leader
			if leader, err = feed.Next(ctx); err == nil && leader.Key != "" && leader.Key != told {
				told = leader.Key
				leads(leader.Value)
			}
		}
	}
	return ctx.Err()
}

// tenure is a tenure, with the session that it needs.
type tenure struct {
	client  *client
	session contender.Session
	ending  sync.Once
	// over is closed when the tenure has ended and will not be resumed.
	over chan struct{}

	mu               sync.Mutex
	contender.Tenure // the present one; after a suspension a new one has the same token
}

// follow waits for the end of the tenure. One that was suspended, because no heartbeat was acknowledged in time,
// continues when its key is proven to exist still; elector.Run does the same.
func (t *tenure) follow(candidate contender.Candidate) {
	defer close(t.over)
	for next := range contender.Tenures(t.client.life, candidate, t.now()) {
		t.mu.Lock()
		t.Tenure = next
		t.mu.Unlock()
		<-next.Context().Done()
	}
}

func (t *tenure) now() contender.Tenure {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Tenure
}

func (t *tenure) Holds() bool { return t.now().Holds() }

// Append does not report an entry as refused while the tenure is suspended: it may continue.
func (t *tenure) Append(ctx context.Context, entry string) error {
	_, err := t.now().Do(ctx, t.client.entry(entry))
	final := errors.Is(err, contender.ErrRefused) && slices.ContainsFunc(t.client.refusals, func(r error) bool { return errors.Is(err, r) })
	if final && errors.Is(err, eldest.ErrSuspended) {
		select {
		case <-t.over:
		default:
			final = false
		}
	}
	if final {
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	}
	return err
}

func (t *tenure) Resign(ctx context.Context) error {
	return errors.Join(t.now().Resign(ctx), t.close(ctx))
}

// close ends the session, and with it the tenure. If etcd does not confirm the revocation of the lease until ctx
// ends, the lease is left to expire.
func (t *tenure) close(ctx context.Context) (err error) {
	t.ending.Do(func() {
		if err = t.session.Close(ctx); err != nil {
			t.session.Abandon()
		}
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil // it has expired
	}
	return err
}
