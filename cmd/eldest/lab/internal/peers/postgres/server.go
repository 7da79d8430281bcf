package postgres

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// account is the user of the system that runs the server if this process is root, which the server refuses, and the
// name of the database's user.
const account = "postgres"

// start creates a database and starts its server.
func start(ctx context.Context, cfg peer.ServerConfig) (*peer.Servers, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	data := cfg.Dir + "/data"
	program := func(name string, args ...string) peer.Program {
		return peer.Program{Path: bin + name, Args: args, Env: []string{"LC_ALL=C"}, Dir: cfg.Dir, User: account}
	}
	// Data that a power failure may damage is no loss: the server's own writes are synchronous as ever.
	if _, err := cfg.Fleet.Do(ctx, program("/initdb",
		"--pgdata="+data, "--username="+account, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")); err != nil {
		return nil, err
	}
	ports, err := cfg.Fleet.Ports(1)
	if err != nil {
		return nil, err
	}
	server := program("/postgres", "-D", data, "-h", "127.0.0.1", "-p", fmt.Sprint(ports[0]), "-c", "unix_socket_directories=")
	for _, setting := range append([]string{maxConnections}, timings[cfg.Setting].server...) {
		server.Args = append(server.Args, "-c", setting)
	}
	// The signal of a fast shutdown: after SIGTERM it would wait for the clients, and after SIGKILL it leaves shared memory.
	server.Signal = syscall.SIGINT
	const name = "the server"
	if err := cfg.Fleet.Start(name, server); err != nil {
		return nil, err
	}
	url := fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable", account, ports[0])
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	s := &peer.Servers{Nodes: 1, Endpoints: []string{url}}
	// Writes counts the transactions that have changed data: only those are given a number. This query is not.
	s.Writes = func(ctx context.Context) (n int64, err error) {
		err = query(ctx, config, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&n)
		})
		return n, err
	}
	return s, cfg.Fleet.Await(ctx, name, func(ctx context.Context) error {
		return query(ctx, config, func(conn *pgx.Conn) error {
			s.Version, _, _ = strings.Cut("PostgreSQL "+conn.PgConn().ParameterStatus("server_version"), " (")
			_, err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS log (id bigserial PRIMARY KEY, election text NOT NULL, entry text NOT NULL)")
			return err
		})
	})
}

// programs returns the directory with the newest PostgreSQL's programs.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	newest, dir := -1, ""
	for _, path := range found {
		bin := filepath.Dir(path)
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		if err == nil && version > newest {
			newest, dir = version, bin
		}
	}
	if dir == "" {
		return "", fmt.Errorf("the package postgresql-15 of Debian is %w", peer.ErrMissing)
	}
	return dir, nil
}
