package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// client is the client of one process: one connection, and one session at a time.
type client struct {
	conn    *zk.Conn
	session *session
	// queue and log are the parents of the candidates' nodes, and of the entries'.
	queue, log string

	// end ends what waits. afterEnd calls a function then, unless the function that it returns is called before.
	end      context.CancelFunc
	afterEnd func(func()) (stop func() bool)
	// events is closed when the library has ended.
	events <-chan zk.Event

	mu     sync.Mutex
	closed bool
	// requests are those that have not ended. Only added to while not closed.
	requests sync.WaitGroup
}

// errClosed is the error of requests after Close.
var errClosed = errors.New("zookeeper: the client is closed")

// dial opens a client.
func dial(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	t, err := timingOf(cfg.Setting)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	c := &client{
		session:  newSession(),
		queue:    "/elections/" + cfg.Election,
		log:      "/logs/" + cfg.Election,
		end:      end,
		afterEnd: func(f func()) func() bool { return context.AfterFunc(life, f) },
	}
	begun := c.session.begun
	connect := func(network, address string, limit time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(life, limit)
		defer cancel()
		conn, err := cfg.Net.Dial(ctx, network, address)
		if err == nil {
			// The library may wait for an answer for ten times its timeout.
			context.AfterFunc(life, func() { _ = conn.Close() })
		}
		return conn, err
	}
	c.conn, c.events, err = zk.Connect(cfg.Endpoints, t.session, zk.WithDialer(connect),
		zk.WithEventCallback(c.session.event), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		end()
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	select {
	case <-begun:
		err = c.makeParents(ctx)
	case <-ctx.Done():
		err = fmt.Errorf("zookeeper: no session: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// makeParents creates the parent nodes, which remain.
func (c *client) makeParents(ctx context.Context) error {
	for _, path := range []string{"/elections", "/logs", c.queue, c.log} {
		_, err := retry(ctx, c, func() (string, error) {
			path, err := c.conn.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
			if errors.Is(err, zk.ErrNodeExists) {
				err = nil
			}
			return path, err
		})
		if err != nil {
			return fmt.Errorf("zookeeper: create %s: %w", path, err)
		}
	}
	return nil
}

// Guards returns nothing: no process guards this one.
func (c *client) Guards() []int { return nil }

// Close ends the session, which deletes all of its nodes.
func (c *client) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.conn.Close() // waits for the answer for at most a second
	c.end()
	for range c.events {
		// Until the library's goroutine has ended.
	}
	c.requests.Wait()
	return nil
}

// goes runs f on a goroutine for which Close waits. It reports false, and does nothing, after Close.
func (c *client) goes(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.requests.Go(f)
	return true
}

// within returns a context that also ends with the client.
func (c *client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := c.afterEnd(func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// silent discards the library's log lines: failures are returned as errors as well.
type silent struct{}

func (silent) Printf(string, ...any) {}
