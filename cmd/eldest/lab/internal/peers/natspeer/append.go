package natspeer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// Append adds an entry as a key of its own, which never expires, on condition that the leader's key has the
// revision of the last update. The server refuses it for three reasons: another candidate leads, the
// revision has changed by an update meanwhile, or such an update is being replicated. Only the first is final.
func (t *tenure) Append(ctx context.Context, entry string) error {
	msg := nats.NewMsg(subject(t.client.logKeys(nuid.Next())))
	msg.Data = []byte(entry)
	msg.Header.Set(jetstream.MsgTTLHeader, "never")
	for {
		t.mu.Lock()
		revision := t.revision
		t.mu.Unlock()
		_, err := t.client.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequenceForSubject(revision, subject(t.client.election)))
		switch {
		case busy(err):
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				return err
			}
		case otherRevision(err):
			changed, waitErr := t.changed(ctx, revision)
			if waitErr != nil {
				return waitErr
			}
			if !changed {
				return fmt.Errorf("another revision of the leader's key: %w", peer.ErrRefused)
			}
		default:
			return err
		}
	}
}

// otherRevision reports whether the leader's key has another revision than expected.
func otherRevision(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// changed reports whether an update has changed the revision. It blocks while one is being sent.
func (t *tenure) changed(ctx context.Context, revision uint64) (bool, error) {
	t.mu.Lock()
	sending := t.sending
	t.mu.Unlock()
	if sending != nil {
		select {
		case <-sending:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.revision != revision, nil
}
