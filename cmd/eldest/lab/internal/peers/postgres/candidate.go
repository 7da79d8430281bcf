package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

const (
	// queuePause is how long nothing is asked after a candidate that the server has not queued yet.
	queuePause = 2 * time.Millisecond
	// tooManyConnections is the code of the error of a server that has max_connections.
	tooManyConnections = "53300"
)

type candidate struct {
	client *client
	id     string
}

// Candidate makes a candidate. Campaign opens its connection.
func (c *client) Candidate(id string) (peer.Candidate, error) {
	return &candidate{client: c, id: id}, nil
}

// Campaign connects, asks for the lock, and waits for it. It fails when the connection breaks.
func (c *candidate) Campaign(ctx context.Context, queued func()) (peer.Tenure, error) {
	z := c.client
	z.mu.Lock()
	if z.closed {
		z.mu.Unlock()
		return nil, errClosed
	}
	z.campaigns.Add(1)
	z.mu.Unlock()
	defer z.campaigns.Done()
	ctx, cancel := z.within(ctx)
	defer cancel()

	conn, err := pgx.ConnectConfig(ctx, z.config)
	if refusal := (*pgconn.PgError)(nil); errors.As(err, &refusal) && refusal.Code == tooManyConnections {
		return nil, fmt.Errorf("postgres: %s: the server has no connection left (max_connections), and each candidate needs one: %w", c.id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: %s: connect: %w", c.id, err)
	}
	if err = z.lock(ctx, conn, queued); err == nil {
		var t *tenure
		if t, err = z.begin(conn); err == nil {
			return t, nil
		}
	}
	z.campaigns.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		end(ctx, conn)
	})
	return nil, fmt.Errorf("postgres: %s: wait for the lock: %w", c.id, err)
}

// lock returns when the connection has the lock.
func (c *client) lock(ctx context.Context, conn *pgx.Conn, queued func()) error {
	var leads bool
	err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", c.key).Scan(&leads)
	if leads || err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pid, locked := conn.PgConn().PID(), make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", c.key)
		locked <- err
	}()
	if err := c.awaitQueued(ctx, pid, locked); err != nil {
		cancel()
		return errors.Join(err, <-locked)
	}
	queued()
	return <-locked
}

// awaitQueued returns when the server process of that number waits for a lock, or has answered, which leaves the
// answer in the channel.
func (c *client) awaitQueued(ctx context.Context, pid uint32, answered chan error) error {
	for waits := false; !waits && len(answered) == 0; {
		err := c.side.use(ctx, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND locktype = 'advisory' AND NOT granted)", int64(pid)).Scan(&waits)
		})
		if err != nil {
			return err
		}
		if waits {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(queuePause):
		}
	}
	return nil
}
