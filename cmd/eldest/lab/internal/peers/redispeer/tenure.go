package redispeer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// tenure is a lock that is held, and extended at intervals.
type tenure struct {
	client *client
	// lock is used by the extensions only, and by Resign after they have ended: a redsync.Mutex may not be
	// used concurrently.
	lock  *redsync.Mutex
	value string
	// until is what redsync says: when the lock expires, less an allowance for the clocks. It is nil when
	// the lock was not extended, or was unlocked.
	until atomic.Pointer[time.Time]
	stop  func() // the extensions
}

func (c *client) lead(lock *redsync.Mutex) *tenure {
	t := &tenure{client: c, lock: lock, value: lock.Value()}
	until := lock.Until()
	t.until.Store(&until)
	t.stop = c.life.Every(c.expiry/extensions, t.extend)
	return t
}

// extend extends the lock, and returns false if that fails. A request may take as long as the lock is held.
func (t *tenure) extend(ctx context.Context) bool {
	request, cancel := context.WithDeadline(ctx, t.lock.Until())
	defer cancel()
	ok, err := t.lock.ExtendContext(request)
	switch {
	case ctx.Err() != nil:
		return false
	case !ok || err != nil:
		t.until.Store(nil)
		return false
	}
	until := t.lock.Until()
	t.until.Store(&until)
	return true
}

// Holds reports whether the lock was extended when it was due, and has not expired by redsync's account.
func (t *tenure) Holds() bool {
	until := t.until.Load()
	return until != nil && time.Now().Before(*until)
}

// guarded adds an entry to the log if the lock has the value of its holder.
var guarded = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then
	return 0
end
return redis.call("RPUSH", KEYS[2], ARGV[2])`)

func (t *tenure) Append(ctx context.Context, entry string) error {
	c := t.client
	if len(c.servers) > 1 {
		return c.log().RPush(ctx, c.logKey(), entry).Err()
	}
	n, err := guarded.Run(ctx, c.log(), []string{c.lockKey(), c.logKey()}, t.value, entry).Int()
	if err == nil && n == 0 {
		return fmt.Errorf("the lock has another value: %w", peer.ErrRefused)
	}
	return err
}

// Resign unlocks. A lock that has expired is no error.
func (t *tenure) Resign(ctx context.Context) error {
	t.stop()
	held := t.Holds()
	t.until.Store(nil)
	if ok, err := t.lock.UnlockContext(ctx); !ok && held {
		return fmt.Errorf("unlocking: %w", err)
	}
	return nil
}
