package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// side is one connection that many goroutines use in turn. It is opened again after it has broken.
type side struct {
	config *pgx.ConnConfig
	// turn has the connection while no goroutine uses it; nil if there is none.
	turn chan *pgx.Conn
}

func newSide(config *pgx.ConnConfig) *side {
	s := &side{config: config, turn: make(chan *pgx.Conn, 1)}
	s.turn <- nil
	return s
}

// use calls f with the connection.
func (s *side) use(ctx context.Context, f func(*pgx.Conn) error) (err error) {
	var conn *pgx.Conn
	select {
	case conn = <-s.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.turn <- conn }()
	if conn == nil || conn.IsClosed() {
		end(ctx, conn)
		if conn, err = pgx.ConnectConfig(ctx, s.config); err != nil {
			conn = nil
			return err
		}
	}
	return f(conn)
}

// close closes the connection, if it is not in use until ctx ends.
func (s *side) close(ctx context.Context) {
	select {
	case conn := <-s.turn:
		end(ctx, conn)
		s.turn <- nil
	case <-ctx.Done():
	}
}

// end closes a connection, if there is one, and waits for that, even if it has been closed in the background since a
// context has ended. It returns within the 15 seconds that pgx grants that, or when the client ends.
func end(ctx context.Context, conn *pgx.Conn) {
	if conn != nil {
		_ = conn.Close(ctx) // it is closed in any case
		<-conn.PgConn().CleanupDone()
	}
}
