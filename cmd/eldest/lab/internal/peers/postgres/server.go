package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

const (
	// connectPause is how long nothing is tried after a connection has failed while the server starts.
	connectPause = 50 * time.Millisecond
	// endTime is how long the server has to end in an orderly way.
	endTime = 10 * time.Second
)

// server is the running server.
type server struct {
	process peer.Process
	url     string
	version string

	mu     sync.Mutex
	ending bool
	// watcher waits for the process.
	watcher sync.WaitGroup
}

// start creates a database and starts its server.
func start(ctx context.Context, cfg peer.ServerConfig) (_ peer.Servers, err error) {
	t, err := timingOf(cfg.Setting)
	if err != nil {
		return nil, err
	}
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	runs, err := owner(cfg.Dir)
	if err != nil {
		return nil, err
	}
	data := cfg.Dir + "/data"
	if err := create(ctx, cfg, peer.Program{
		Path: bin + "/initdb", Dir: cfg.Dir, User: runs, Env: []string{"LC_ALL=C"},
		// Data that a power failure may damage is no loss: the server's own writes are synchronous as ever.
		Args: []string{"--pgdata=" + data, "--username=" + account, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"},
	}); err != nil {
		return nil, err
	}
	ports, err := cfg.Ports(1)
	if err != nil {
		return nil, err
	}
	args := []string{"-D", data, "-h", "127.0.0.1", "-p", fmt.Sprint(ports[0]), "-c", "unix_socket_directories="}
	for _, setting := range append([]string{maxConnections}, t.server...) {
		args = append(args, "-c", setting)
	}
	p, err := cfg.Run(peer.Program{Path: bin + "/postgres", Dir: cfg.Dir, User: runs, Env: []string{"LC_ALL=C"}, Args: args})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s := &server{process: p, url: fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable", account, ports[0])}
	s.watcher.Go(func() {
		<-p.Done()
		s.mu.Lock()
		expected := s.ending
		s.mu.Unlock()
		if !expected {
			cfg.Died(fmt.Errorf("postgres: the server has ended: %s", p.Output()))
		}
	})
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// create runs initdb.
func create(ctx context.Context, cfg peer.ServerConfig, initdb peer.Program) error {
	p, err := cfg.Run(initdb)
	if err != nil {
		return fmt.Errorf("postgres: initdb: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("postgres: initdb: %w", context.Cause(ctx))
	}
	if !strings.Contains(p.Output(), "Success.") {
		return fmt.Errorf("postgres: initdb has failed: %s", p.Output())
	}
	return nil
}

// prepare waits until the server accepts connections, and creates the table of the elections' logs.
func (s *server) prepare(ctx context.Context) error {
	for {
		err := s.query(ctx, func(conn *pgx.Conn) error {
			s.version, _, _ = strings.Cut("PostgreSQL "+conn.PgConn().ParameterStatus("server_version"), " (")
			_, err := conn.Exec(ctx, "CREATE TABLE log (id bigserial PRIMARY KEY, election text NOT NULL, entry text NOT NULL)")
			return err
		})
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Done():
			return fmt.Errorf("postgres: the server has ended: %s", s.process.Output())
		case <-ctx.Done():
			return fmt.Errorf("postgres: the server does not serve: %w; its output: %s", errors.Join(context.Cause(ctx), err), s.process.Output())
		case <-time.After(connectPause):
		}
	}
}

// query calls f with a connection, which is used once.
func (s *server) query(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	err = f(conn)
	closing := conn.Close(ctx)
	<-conn.PgConn().CleanupDone()
	return errors.Join(err, closing)
}

func (s *server) Version() string { return s.version }

func (s *server) Nodes() int { return 1 }

// Endpoints is the URL of the database.
func (s *server) Endpoints() []string { return []string{s.url} }

// Writes counts the transactions that have changed data: only those are given a number. This query is not.
func (s *server) Writes(ctx context.Context) (n int64, err error) {
	err = s.query(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("postgres: count the transactions: %w", err)
	}
	return n, nil
}

// KillLeader is not possible: there is one server.
func (s *server) KillLeader(context.Context) (killed time.Time, restart func(context.Context) error, err error) {
	return killed, nil, fmt.Errorf("postgres: kill the leader of one server: %w", errors.ErrUnsupported)
}

// Close ends the server and its connections, by the signal of a fast shutdown: after SIGTERM it would wait for the
// clients.
func (s *server) Close() error {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	select {
	case <-s.process.Done(): // its number may be that of another process
	default:
		_ = syscall.Kill(s.process.Pid(), syscall.SIGINT) // it may have ended since
	}
	select {
	case <-s.process.Done():
	case <-time.After(endTime):
		s.process.Kill()
	}
	s.watcher.Wait()
	return nil
}
