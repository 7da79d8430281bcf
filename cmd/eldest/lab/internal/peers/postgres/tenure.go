package postgres

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// tenure is a connection that has the lock.
type tenure struct {
	client *client
	conn   *pgx.Conn
	// socket is that of conn. It may be closed while another goroutine uses conn.
	socket net.Conn
	// turn has a value while a goroutine uses conn.
	turn chan struct{}
	// over is whether it was resigned, or the connection is known to be broken.
	over atomic.Bool

	stopPings context.CancelFunc
	pings     chan struct{} // closed when there are no more
}

// begin returns the tenure of a connection that has the lock.
func (c *client) begin(conn *pgx.Conn) (*tenure, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	ctx, stop := context.WithCancel(context.Background())
	t := &tenure{client: c, conn: conn, socket: conn.PgConn().Conn(), turn: make(chan struct{}, 1), stopPings: stop, pings: make(chan struct{})}
	c.tenures[t] = true
	go t.ping(ctx)
	return t, nil
}

// ping pings the server until ctx ends, or there is no answer, if the settings say so.
func (t *tenure) ping(ctx context.Context) {
	defer close(t.pings)
	every := t.client.timing.ping
	if every == 0 {
		return
	}
	for !t.over.Load() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		limited, cancel := context.WithTimeout(ctx, every)
		err := t.use(limited, func() error { return t.conn.Ping(limited) })
		cancel()
		if err != nil && ctx.Err() == nil {
			t.over.Store(true)
			_ = t.socket.Close() // as soon as the network is back, the server is to know
		}
	}
}

// use calls f while no other goroutine uses the connection.
func (t *tenure) use(ctx context.Context, f func() error) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.turn }()
	err := f()
	if t.conn.IsClosed() {
		t.over.Store(true)
	}
	return err
}

// Holds reports whether the connection is not known to be broken.
func (t *tenure) Holds() bool { return !t.over.Load() }

// Append inserts a row on the connection that has the lock. If ctx ends meanwhile, so does the tenure.
func (t *tenure) Append(ctx context.Context, entry string) error {
	return t.use(ctx, func() error {
		if t.over.Load() {
			return fmt.Errorf("postgres: append: the connection that had the lock is closed: %w", peer.ErrRefused)
		}
		_, err := t.conn.Exec(ctx, "INSERT INTO log (election, entry) VALUES ($1, $2)", t.client.election, entry)
		switch {
		case err == nil:
			return nil
		case t.conn.IsClosed() && pgconn.SafeToRetry(err): // nothing was sent
			return fmt.Errorf("postgres: append: %w: %w", peer.ErrRefused, err)
		default:
			return fmt.Errorf("postgres: append: %w", err)
		}
	})
}

// Resign unlocks and closes the connection. If that is broken, the server releases the lock when it notices.
func (t *tenure) Resign(ctx context.Context) error {
	t.over.Store(true)
	err := t.use(ctx, func() error {
		t.stopPings() // now, while none is being sent: pgx closes a connection whose context ends
		if t.conn.IsClosed() {
			return nil
		}
		_, err := t.conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", t.client.key)
		_ = t.conn.Close(ctx) // the lock has ended, or ends with the connection
		return err
	})
	if err != nil {
		return fmt.Errorf("postgres: resign: %w", err)
	}
	return nil
}

// finish waits until all of the tenure has ended. The client has closed the connection.
func (t *tenure) finish() {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	t.stopPings()
	end(context.Background(), t.conn)
}
