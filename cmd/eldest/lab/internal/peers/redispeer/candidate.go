package redispeer

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/go-redsync/redsync/v4"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

type candidate struct {
	client *client
	id     string
}

// Candidate returns a candidate. All of a client share its connections.
func (c *client) Candidate(id string) (peer.Candidate, error) { return candidate{c, id}, nil }

// Campaign tries to lock until it succeeds: redsync's own tries, which are 32, repeated. The candidate waits from
// its first try on that fails because others have the lock. One that fails for another reason is repeated before.
func (c candidate) Campaign(ctx context.Context, queued func()) (peer.Tenure, error) {
	lock := c.client.locks.NewMutex(c.client.lockKey(), redsync.WithExpiry(c.client.expiry),
		redsync.WithGenValueFunc(func() (string, error) { return newValue(c.id), nil }))
	err := lock.TryLockContext(ctx)
	for err != nil && !taken(err) && ctx.Err() == nil {
		pause(ctx)
		err = lock.TryLockContext(ctx)
	}
	if err != nil && ctx.Err() == nil {
		queued()
	}
	for err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err = lock.LockContext(ctx)
	}
	return c.client.lead(lock), nil
}

// taken reports whether a try has failed because others have the lock, or a part of it.
func taken(err error) bool {
	var lock *redsync.ErrTaken
	var node *redsync.ErrNodeTaken
	return errors.As(err, &lock) || errors.As(err, &node)
}

// newValue returns a value of the lock for one try. It has the holder's ID, for observers, and is unique, as
// redsync's own values are.
func newValue(id string) string { return id + "/" + rand.Text() }

// holder returns the ID in a value of the lock.
func holder(value string) string {
	id, _, _ := strings.Cut(value, "/")
	return id
}
