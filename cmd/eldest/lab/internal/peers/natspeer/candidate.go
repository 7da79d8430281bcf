package natspeer

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// pause is how long a candidate waits before it tries again to create a key that does not exist.
const pause = 5 * time.Millisecond

type candidate struct {
	client *client
	id     string
}

// Campaign tries to create the key. If it exists, the candidate watches it, and tries again when it is deleted
// or has expired, until it exists again; and at each interval, in case the watch has missed that. One try would
// not do: the servers refuse it while they replicate the deletion, and it fails if the server that it reads from
// does not know of the deletion yet.
func (c candidate) Campaign(ctx context.Context, queued func()) (peer.Tenure, error) {
	if t := c.try(ctx); t != nil {
		return t, nil
	}
	w, err := c.client.watch(ctx, c.client.election)
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	defer stop(w)
	queued()
	ticks := time.NewTicker(c.client.timing.interval)
	defer ticks.Stop()
	var again <-chan time.Time // nil while the key exists
	for exists := false; ; {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, errors.Join(ctx.Err(), errors.New("the watch has ended"))
			case e != nil:
				exists = e.Operation() == jetstream.KeyValuePut
			}
			if exists {
				again = nil
				continue
			}
		case <-again:
		case <-ticks.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if t := c.try(ctx); t != nil {
			return t, nil
		}
		if !exists {
			again = time.After(pause)
		}
	}
}

// try creates the key, and returns nil if that fails, for whatever reason: another try follows.
func (c candidate) try(ctx context.Context) *tenure {
	request, cancel := context.WithTimeout(ctx, c.client.timing.request)
	defer cancel()
	revision, err := c.client.bucket.Create(request, c.client.election, []byte(c.id))
	if err != nil {
		return nil
	}
	return c.client.lead(c.id, revision)
}
