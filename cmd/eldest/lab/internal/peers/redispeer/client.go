package redispeer

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// client has a connection pool for each server.
type client struct {
	expiry   time.Duration
	election string
	servers  []*redis.Client
	locks    *redsync.Redsync

	// closing ends the extensions of all tenures, and extending waits for them.
	closing   context.Context
	close     context.CancelFunc
	extending sync.WaitGroup
}

func dial(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	c := &client{expiry: settings[cfg.Setting], election: cfg.Election}
	c.closing, c.close = context.WithCancel(context.Background())
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

// log is the server that has the log: the only one, or the last one of Redlock.
func (c *client) log() *redis.Client { return c.servers[len(c.servers)-1] }

// The keys of the election's lock and log.
func (c *client) lockKey() string { return "lock:" + c.election }
func (c *client) logKey() string  { return "log:" + c.election }

func (c *client) Log(ctx context.Context) ([]string, error) {
	return c.log().LRange(ctx, c.logKey(), 0, -1).Result()
}

func (c *client) Guards() []int { return nil }

func (c *client) Close() error {
	c.close()
	c.extending.Wait()
	var errs []error
	for _, server := range c.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}
