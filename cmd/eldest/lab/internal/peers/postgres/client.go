package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// closeTime is how long each orderly step of Close may take.
const closeTime = 2 * time.Second

// client is the client of one process. Its candidates have a connection each.
type client struct {
	config   *pgx.ConnConfig
	timing   timing
	election string
	// key is that of the election's lock.
	key int64
	// side is a connection for what is not a leader's statement. It has no lock.
	side *side

	// end ends what waits. afterEnd calls a function then, unless the function that it returns is called before.
	end      context.CancelFunc
	afterEnd func(func()) (stop func() bool)

	mu      sync.Mutex
	closed  bool
	tenures map[*tenure]bool
	// campaigns are those that have not ended. Only added to while not closed.
	campaigns sync.WaitGroup
}

// errClosed is the error of calls after Close.
var errClosed = errors.New("postgres: the client is closed")

// dial opens a client.
func dial(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	t, err := timingOf(cfg.Setting)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(cfg.Endpoints[0])
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	life, end := context.WithCancel(context.Background())
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		conn, err := cfg.Net.Dial(ctx, network, address)
		if err == nil {
			// pgx may wait for the end of a connection for 15 seconds.
			context.AfterFunc(life, func() { _ = conn.Close() })
		}
		return conn, err
	}
	c := &client{
		config:   config,
		timing:   t,
		election: cfg.Election,
		key:      key(cfg.Election),
		side:     newSide(config),
		end:      end,
		afterEnd: func(f func()) func() bool { return context.AfterFunc(life, f) },
		tenures:  map[*tenure]bool{},
	}
	if err := c.side.use(ctx, func(conn *pgx.Conn) error { return conn.Ping(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: connect: %w", err), c.Close())
	}
	return c, nil
}

// key maps names to the numbers of locks.
func key(election string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(election)) // it has no errors
	return int64(h.Sum64())
}

// Guards returns nothing: no process guards this one.
func (c *client) Guards() []int { return nil }

// Observe is not part of the recipe.
func (c *client) Observe(context.Context, func(string)) error {
	return fmt.Errorf("postgres: observe an advisory lock: %w", errors.ErrUnsupported)
}

// Log reads the entries in the order of their numbers. Only the holder of the lock adds entries, one at a time, so
// that is the order in which they were committed.
func (c *client) Log(ctx context.Context) (entries []string, err error) {
	err = c.side.use(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT entry FROM log WHERE election = $1 ORDER BY id", c.election)
		if err == nil {
			entries, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: log: %w", err)
	}
	return entries, nil
}

// Close unlocks, and closes all connections.
func (c *client) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	var tenures []*tenure
	for t := range c.tenures {
		tenures = append(tenures, t)
	}
	c.mu.Unlock()
	if closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for _, t := range tenures {
		_ = t.Resign(ctx) // the connection ends below in any case
	}
	c.side.close(ctx)
	c.end() // closes all connections that are left, so what follows does not block
	c.side.close(context.Background())
	c.campaigns.Wait()
	for _, t := range tenures {
		t.finish()
	}
	return nil
}

// within returns a context that also ends with the client.
func (c *client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := c.afterEnd(func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil) }
}
