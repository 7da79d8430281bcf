package postgres

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

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
}

// lead returns the tenure of a connection that has the lock. The client's end resigns it.
func (c *client) lead(conn *pgx.Conn) *tenure {
	t := &tenure{client: c, conn: conn, socket: conn.PgConn().Conn(), turn: make(chan struct{}, 1)}
	if every := c.timing.ping; every > 0 {
		c.life.Every(every, t.ping)
	}
	c.life.AtEnd(func(ctx context.Context) { _ = t.Resign(ctx) }) // the connection ends in any case
	c.life.Go(func() {
		<-c.life.Done()
		t.turn <- struct{}{}
		end(c.life, conn)
		<-t.turn
	})
	return t
}

// ping pings the server, and returns false if the tenure is over.
func (t *tenure) ping(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, t.client.timing.ping)
	defer cancel()
	err := t.use(limited, func() error {
		if t.over.Load() {
			return nil
		}
		return t.conn.Ping(limited)
	})
	if err != nil && ctx.Err() == nil {
		t.over.Store(true)
		_ = t.socket.Close() // as soon as the network is back, the server is to know
	}
	return !t.over.Load()
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
			return fmt.Errorf("the connection that had the lock is closed: %w", peer.ErrRefused)
		}
		_, err := t.conn.Exec(ctx, "INSERT INTO log (election, entry) VALUES ($1, $2)", t.client.election, entry)
		if err != nil && t.conn.IsClosed() && pgconn.SafeToRetry(err) { // nothing was sent
			return fmt.Errorf("%w: %w", peer.ErrRefused, err)
		}
		return err
	})
}

// Resign unlocks and closes the connection. If that is broken, the server releases the lock when it notices.
func (t *tenure) Resign(ctx context.Context) error {
	t.over.Store(true)
	return t.use(ctx, func() error {
		if t.conn.IsClosed() {
			return nil
		}
		_, err := t.conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", t.client.key)
		_ = t.conn.Close(ctx) // the lock has ended, or ends with the connection
		return err
	})
}
