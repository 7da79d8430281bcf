package natspeer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/retry"
)

// tenure is a key that was created, and is updated at each interval.
type tenure struct {
	client *client
	id     string
	stop   func() // the updates

	updating sync.Mutex // held while an update is sent: the key's revision is unknown then

	mu       sync.Mutex
	revision uint64 // of the last update
	lost     bool   // an update has failed, or the leader has resigned
}

// update updates the key, and returns false if that has failed.
func (t *tenure) update(ctx context.Context) bool {
	t.updating.Lock()
	defer t.updating.Unlock()
	request, cancel := context.WithTimeout(ctx, t.client.timing.request)
	defer cancel()
	revision, _ := t.state()
	var next uint64
	err := unlessBusy(request, func() (err error) {
		next, err = t.client.bucket.Update(request, t.client.election, []byte(t.id), revision)
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.revision = next
	} else if ctx.Err() == nil {
		t.lost = true
	}
	return err == nil
}

func (t *tenure) state() (revision uint64, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.revision, t.lost
}

// unlessBusy calls f again as long as the server refuses its message because another one, which concerns the same key,
// is being replicated. That says nothing about the key's revision.
func unlessBusy(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !refusedAs(err, jetstream.JSErrCodeStreamWrongLastSequenceConstant) || retry.Sleep(ctx, time.Millisecond) != nil {
			return err
		}
	}
}

func refusedAs(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

// Holds reports whether no update has failed. Time plays no part, as in nats-kv-leader-elect.
func (t *tenure) Holds() bool {
	_, lost := t.state()
	return !lost
}

// Append adds an entry as a key of its own, which never expires, on condition that the leader's key has the
// revision of the last update. The server refuses it for three reasons: another candidate leads, the
// revision has changed by an update meanwhile, or such an update is being replicated. Only the first is final.
func (t *tenure) Append(ctx context.Context, entry string) error {
	msg := nats.NewMsg(subject(t.client.logKeys(nuid.Next())))
	msg.Data = []byte(entry)
	msg.Header.Set(jetstream.MsgTTLHeader, "never")
	for {
		revision, _ := t.state()
		err := unlessBusy(ctx, func() error {
			_, err := t.client.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequenceForSubject(revision, subject(t.client.election)))
			return err
		})
		if !refusedAs(err, jetstream.JSErrCodeStreamWrongLastSequence) {
			return err
		}
		t.updating.Lock() // until no update is being sent
		now, _ := t.state()
		t.updating.Unlock()
		if now == revision {
			return fmt.Errorf("another revision of the leader's key: %w", peer.ErrRefused)
		}
	}
}

// Resign deletes the key, if it is still the leader's.
func (t *tenure) Resign(ctx context.Context) error {
	t.stop()
	t.mu.Lock()
	held, revision := !t.lost, t.revision
	t.lost = true
	t.mu.Unlock()
	if !held {
		return nil
	}
	return unlessBusy(ctx, func() error {
		return t.client.bucket.Delete(ctx, t.client.election, jetstream.LastRevision(revision))
	})
}
