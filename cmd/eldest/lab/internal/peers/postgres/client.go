package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// tooManyConnections is the code of the error of a server that has max_connections.
const tooManyConnections = "53300"

// client is the client of one process. Its candidates have a connection each.
type client struct {
	config   *pgx.ConnConfig
	timing   timing
	election string
	// key is that of the election's lock.
	key  int64
	life *peer.Life // connections and tenures
}

// dial opens a client.
func dial(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	config, err := pgx.ParseConfig(cfg.Endpoints[0])
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(cfg.Election)) // it has no errors
	c := &client{config: config, timing: timings[cfg.Setting], election: cfg.Election, key: int64(h.Sum64()), life: peer.NewLife()}
	config.DialFunc = func(ctx context.Context, _, address string) (net.Conn, error) {
		return c.life.Dial(ctx, cfg.Net, address) // pgx may wait for the end of a connection for 15 seconds
	}
	if err := query(ctx, config, func(conn *pgx.Conn) error { return conn.Ping(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), c.Close())
	}
	return c, nil
}

// Close unlocks, and closes all connections.
func (c *client) Close() error {
	c.life.End()
	return nil
}

// query calls f with a connection, which is used once.
func query(ctx context.Context, config *pgx.ConnConfig, f func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer end(ctx, conn)
	return f(conn)
}

// end closes a connection, and waits for that, even if it has been closed in the background since a context has
// ended. It returns within the 15 seconds that pgx grants that, or when the client ends.
func end(ctx context.Context, conn *pgx.Conn) {
	_ = conn.Close(ctx) // it is closed in any case
	<-conn.PgConn().CleanupDone()
}

// Campaign connects, asks for the lock, and waits for it. It fails when the connection breaks.
func (c *client) Campaign(ctx context.Context, id string, queued func()) (peer.Tenure, error) {
	conn, err := pgx.ConnectConfig(ctx, c.config)
	if refusal := (*pgconn.PgError)(nil); errors.As(err, &refusal) && refusal.Code == tooManyConnections {
		return nil, fmt.Errorf("%s: the server has no connection left (max_connections), and each candidate needs one: %w", id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: connect: %w", id, err)
	}
	if err := c.lock(ctx, conn, queued); err != nil {
		c.life.Go(func() { end(c.life, conn) })
		return nil, fmt.Errorf("%s: wait for the lock: %w", id, err)
	}
	return c.lead(conn), nil
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

// Log reads the entries in the order of their numbers. Only the holder of the lock adds entries, one at a time, so
// that is the order in which they were committed.
func (c *client) Log(ctx context.Context) (entries []string, err error) {
	err = query(ctx, c.config, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT entry FROM log WHERE election = $1 ORDER BY id", c.election)
		if err == nil {
			entries, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return entries, err
}
