package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// tooManyConnections is the code of the error of a server that has max_connections.
const tooManyConnections = "53300"

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
	queued() // as soon as the server has the next statement
	_, err = conn.Exec(ctx, "SELECT pg_advisory_lock($1)", c.key)
	return err
}
