package natspeer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// tenure is a key that was created, and is updated by a goroutine.
type tenure struct {
	client  *client
	id      string
	stop    context.CancelFunc
	updated chan struct{} // closed when the goroutine has ended
	resign  sync.Once

	mu sync.Mutex
	// revision is that of the last update. While one is sent, sending is not nil, and closed when it is
	// answered: the key's revision is unknown then.
	revision uint64
	sending  chan struct{}
	lost     bool // an update has failed, or the leader has resigned
}

func (c *client) lead(id string, revision uint64) *tenure {
	t := &tenure{client: c, id: id, revision: revision, updated: make(chan struct{})}
	ctx, cancel := context.WithCancel(c.closing)
	t.stop = cancel
	c.updating.Go(func() {
		defer close(t.updated)
		defer cancel()
		t.update(ctx)
	})
	return t
}

// update updates the key until that fails, or ctx ends.
func (t *tenure) update(ctx context.Context) {
	ticks := time.NewTicker(t.client.timing.interval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		sent := make(chan struct{})
		t.mu.Lock()
		t.sending = sent
		revision := t.revision
		t.mu.Unlock()
		revision, err := t.send(ctx, revision)
		t.mu.Lock()
		t.sending = nil
		if err == nil {
			t.revision = revision
		} else if ctx.Err() == nil {
			t.lost = true
		}
		t.mu.Unlock()
		close(sent)
		if err != nil {
			return
		}
	}
}

// send sends one update. An entry that is being written makes the server refuse it; then it is sent again.
func (t *tenure) send(ctx context.Context, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, t.client.timing.request)
	defer cancel()
	for {
		next, err := t.client.bucket.Update(ctx, t.client.election, []byte(t.id), revision)
		if !busy(err) {
			return next, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, err
		}
	}
}

// busy reports whether the server has refused a message because another one, which concerns the same key, is
// being replicated. It says nothing about the key's revision.
func busy(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// Holds reports whether no update has failed. Time plays no part, as in nats-kv-leader-elect.
func (t *tenure) Holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.lost
}

// Resign deletes the key, if it is still the leader's.
func (t *tenure) Resign(ctx context.Context) (err error) {
	t.resign.Do(func() {
		t.stop()
		<-t.updated
		t.mu.Lock()
		held, revision := !t.lost, t.revision
		t.lost = true
		t.mu.Unlock()
		if !held {
			return
		}
		err = t.client.bucket.Delete(ctx, t.client.election, jetstream.LastRevision(revision))
		for busy(err) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
			err = t.client.bucket.Delete(ctx, t.client.election, jetstream.LastRevision(revision))
		}
		if err != nil {
			err = fmt.Errorf("deleting the leader's key: %w", err)
		}
	})
	return err
}
