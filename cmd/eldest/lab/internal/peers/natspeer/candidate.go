package natspeer

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

type candidate struct {
	client *client
	id     string
}

// Campaign tries to create the key. If it exists, the candidate watches it, and tries again when it is deleted
// or has expired, and at each interval, in case the watch has missed that.
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
				continue
			}
		case <-ticks.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if t := c.try(ctx); t != nil {
			return t, nil
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
