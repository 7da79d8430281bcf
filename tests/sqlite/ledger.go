package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver, in Go

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
)

// schema has the table of the newest tokens, and the tables that they fence: a counter, and a log
// of all writes to it.
const schema = `
CREATE TABLE IF NOT EXISTS eldest_fence (
	election TEXT PRIMARY KEY,
	token    INTEGER NOT NULL CHECK (token > 0)
);
CREATE TABLE IF NOT EXISTS counter (
	name TEXT PRIMARY KEY,
	n    INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS trail (
	id    INTEGER PRIMARY KEY AUTOINCREMENT,
	node  TEXT NOT NULL,
	token INTEGER NOT NULL,
	n     INTEGER NOT NULL
);
`

// advance stores a token unless a newer one is stored, and returns the newest.
const advance = `
INSERT INTO eldest_fence (election, token) VALUES ($1, $2)
ON CONFLICT (election) DO UPDATE SET token =
	CASE WHEN excluded.token > eldest_fence.token THEN excluded.token ELSE eldest_fence.token END
RETURNING token
`

// ledger is a counter in SQLite that only the leader of an election writes.
type ledger struct {
	db     *sql.DB
	fenced bool // false: to show the fault
}

// openLedger opens the file, and makes it if necessary. Every transaction takes the database's
// write lock when it begins (_txlock): what it has checked stays true until it commits.
func openLedger(ctx context.Context, file string, fenced bool) (*ledger, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+
		"?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ledger{db, fenced}, nil
}

// in runs write in one transaction. No newer token than this one was stored before it, and none can
// be until it ends. Otherwise in changes nothing and returns a *fence.RefusedError.
func (l *ledger) in(ctx context.Context, election string, token eldest.Token, write func(tx *sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if l.fenced {
		var newest eldest.Token
		if err := tx.QueryRowContext(ctx, advance, election, token).Scan(&newest); err != nil {
			return err
		}
		if newest > token {
			return &fence.RefusedError{Election: election, Token: token, Newest: newest}
		}
	}
	if err := write(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// begin is a leader's first step: it makes its token the newest, and reads the counter, in one
// transaction. From then on no earlier leader can change that value.
func (l *ledger) begin(ctx context.Context, election string, token eldest.Token) (n int64, err error) {
	err = l.in(ctx, election, token, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT n FROM counter WHERE name = $1", election).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // the counter does not exist yet
		}
		return err
	})
	return n, err
}

// set writes the counter, in the transaction that checks the token.
func (l *ledger) set(ctx context.Context, election string, token eldest.Token, node string, n int64) error {
	return l.in(ctx, election, token, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO counter (name, n) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = excluded.n", election, n); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO trail (node, token, n) VALUES ($1, $2, $3)", node, token, n)
		return err
	})
}

// Advance implements fence.Store: it uses the same statement, in a transaction of its own.
func (l *ledger) Advance(ctx context.Context, election string, token eldest.Token) (newest eldest.Token, err error) {
	err = l.db.QueryRowContext(ctx, advance, election, token).Scan(&newest)
	return newest, err
}

func (l *ledger) close() error { return l.db.Close() }
