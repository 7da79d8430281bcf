package redispeer

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/retry"
)

// client has a connection pool for each server.
type client struct {
	expiry   time.Duration
	election string
	servers  []*redis.Client
	locks    *redsync.Redsync
	life     *peer.Life // the extensions of all tenures
}

func dial(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	c := &client{expiry: settings[cfg.Setting], election: cfg.Election, life: peer.NewLife()}
	var pools []redsyncredis.Pool
	for _, endpoint := range cfg.Endpoints {
		opts := options(endpoint)
		opts.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			return cfg.Net.Dial(ctx, network, address)
		}
		server := redis.NewClient(opts)
		c.servers = append(c.servers, server)
		pools = append(pools, goredis.NewPool(server))
		if err := server.Ping(ctx).Err(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	c.locks = redsync.New(pools...)
	return c, nil
}

func (c *client) Close() error {
	c.life.End()
	var errs []error
	for _, server := range c.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}

// The keys of the election's lock and log.
func (c *client) lockKey() string { return "lock:" + c.election }
func (c *client) logKey() string  { return "log:" + c.election }

// log is the server that has the log: the only one, or the last one of Redlock.
func (c *client) log() *redis.Client { return c.servers[len(c.servers)-1] }

func (c *client) Log(ctx context.Context) ([]string, error) {
	return c.log().LRange(ctx, c.logKey(), 0, -1).Result()
}

// pause sleeps as long as a candidate that waits, or until ctx ends: 50 to 250 ms are redsync's defaults.
func pause(ctx context.Context) {
	_ = retry.Sleep(ctx, 50*time.Millisecond+mathrand.N(200*time.Millisecond))
}

// Campaign tries to lock until it succeeds: redsync's own tries, which are 32, repeated. The candidate waits from
// its first try on that fails because others have the lock. One that fails for another reason is repeated before.
// A value of the lock has the holder's ID, for observers, and is unique for each try, as redsync's own values are.
func (c *client) Campaign(ctx context.Context, id string, queued func()) (peer.Tenure, error) {
	lock := c.locks.NewMutex(c.lockKey(), redsync.WithExpiry(c.expiry),
		redsync.WithGenValueFunc(func() (string, error) { return id + "/" + rand.Text(), nil }))
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
	return c.lead(lock), nil
}

// taken reports whether a try has failed because others have the lock, or a part of it.
func taken(err error) bool {
	var lock *redsync.ErrTaken
	var node *redsync.ErrNodeTaken
	return errors.As(err, &lock) || errors.As(err, &node)
}

// Observe reads the lock as often as a candidate that waits tries to lock it: redsync has no observers.
func (c *client) Observe(ctx context.Context, leads func(id string)) error {
	for last := ""; ctx.Err() == nil; pause(ctx) {
		if value := c.value(ctx); value != "" && value != last {
			last = value
			id, _, _ := strings.Cut(value, "/")
			leads(id)
		}
	}
	return ctx.Err()
}

// value returns the lock's value in the majority of the servers, or "" if it has none. A server that does not
// answer counts as one without the lock, as it does for redsync.
func (c *client) value(ctx context.Context) string {
	in := map[string]int{}
	for _, server := range c.servers {
		value, err := server.Get(ctx, c.lockKey()).Result()
		if err != nil {
			continue // redis.Nil, too: there is no lock
		}
		if in[value]++; in[value] > len(c.servers)/2 {
			return value
		}
	}
	return ""
}
