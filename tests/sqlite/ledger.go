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

// schema is the table of the newest tokens, and what they fence: a counter, and a trail of
// all that was written to it.
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

// advance has a token remembered unless a newer one is, and returns the newest.
const advance = `
INSERT INTO eldest_fence (election, token) VALUES ($1, $2)
ON CONFLICT (election) DO UPDATE SET token =
	CASE WHEN excluded.token > eldest_fence.token THEN excluded.token ELSE eldest_fence.token END
RETURNING token
`

// ledger is a counter in SQLite that only the leader of an election writes.
type ledger struct {
	db     *sql.DB
	fenced bool // false: to see what happens then
}

// openLedger opens the file, and makes it if need be. Every transaction takes the
// database's write lock as it begins (_txlock): what it has checked stays true until it
// commits.
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

// in runs write in one transaction, in which no newer token than this one has been seen
// and none can be until it ends. Otherwise it changes nothing and returns a
// *fence.RefusedError.
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

// begin is what a leader does first: it makes its token the newest, and reads where the
// counter stands, in one transaction. What it reads, no earlier leader changes any more.
func (l *ledger) begin(ctx context.Context, election string, token eldest.Token) (n int64, err error) {
	err = l.in(ctx, election, token, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT n FROM counter WHERE name = $1", election).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // nobody has counted yet
		}
		return err
	})
	return n, err
}

// set writes the counter, in the transaction that looks at the token.
func (l *ledger) set(ctx context.Context, election string, token eldest.Token, node string, n int64) error {
	return l.in(ctx, election, token, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO counter (name, n) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = excluded.n", election, n); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO trail (node, token, n) VALUES ($1, $2, $3)", node, token, n)
		return err
	})
}

// Advance makes the ledger a fence.Store: the same statement, in a transaction of its own.
func (l *ledger) Advance(ctx context.Context, election string, token eldest.Token) (newest eldest.Token, err error) {
	err = l.db.QueryRowContext(ctx, advance, election, token).Scan(&newest)
	return newest, err
}

func (l *ledger) close() error { return l.db.Close() }
