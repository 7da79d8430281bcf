package election_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/keys"
)

// Regression 40: bad input is refused by a typed error before anything is sent, and
// the text names the operation and the election.
func TestNewRefusesBadInput(t *testing.T) {
	s := newStage(t)
	session := s.session(s.cli)
	var none *clientv3.Client
	for name, change := range map[string]func(*election.Config){
		"no name":           func(cfg *election.Config) { cfg.Election = "" },
		"slash":             func(cfg *election.Config) { cfg.Election = "svc/a" },
		"trailing slash":    func(cfg *election.Config) { cfg.Election = "svc/" },
		"name too long":     func(cfg *election.Config) { cfg.Election = strings.Repeat("n", keys.MaxName+1) },
		"no session":        func(cfg *election.Config) { cfg.Session = nil },
		"no KV":             func(cfg *election.Config) { cfg.KV = nil },
		"nil client as KV":  func(cfg *election.Config) { cfg.KV = none },
		"no watcher":        func(cfg *election.Config) { cfg.Watcher = nil },
		"nil client":        func(cfg *election.Config) { cfg.Watcher = none },
		"negative time-out": func(cfg *election.Config) { cfg.Timeout = -time.Second },
		"turn by hand":      func(cfg *election.Config) { cfg.Turn = &election.Turn{} },
		"large value":       func(cfg *election.Config) { cfg.Value = make([]byte, election.MaxValue+1) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := election.Config{Election: "name", Session: session, KV: s.cli, Watcher: s.cli}
			change(&cfg)
			s.rec.Reset()
			c, err := election.New(cfg)
			require.Nil(t, c)
			require.ErrorIs(t, err, eldest.ErrInvalid)
			var op *eldest.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, cfg.Election, op.Election)
			require.ErrorContains(t, err, "new candidate")
			require.Zero(t, s.rec.Count())
		})
	}
}

// What is wrong with a call: typed, named, and nothing sent, nothing changed.
func TestCallsRefuseBadInput(t *testing.T) {
	s := newStage(t)
	idle, leading := s.candidate("idle"), s.candidate("leading")
	l := s.lead(leading)
	s.watched(1)
	large := make([]byte, election.MaxValue+1)
	none := context.Context(nil)
	campaign := func(f func(context.Context) (*election.Leadership, error)) func() error {
		return func() error { _, err := f(none); return err }
	}
	for _, tc := range []struct {
		name, op string
		key      string
		call     func() error
		want     error
	}{
		{"campaign without a context", "campaign", idle.Key(), campaign(idle.Campaign), eldest.ErrInvalid},
		{"try without a context", "try", idle.Key(), campaign(idle.Try), eldest.ErrInvalid},
		{"await without a context", "await", idle.Key(), campaign(idle.Await), eldest.ErrInvalid},
		{"register without a context", "register", idle.Key(), func() error { _, err := idle.Register(none); return err }, eldest.ErrInvalid},
		{"withdraw without a context", "withdraw", idle.Key(), func() error { return idle.Withdraw(none) }, eldest.ErrInvalid},
		{"close without a context", "close candidate", leading.Key(), func() error { return leading.Close(none) }, eldest.ErrInvalid},
		{"resign without a context", "resign", leading.Key(), func() error { return l.Resign(none) }, eldest.ErrInvalid},
		{"lead without a context", "lead", leading.Key(), func() error { return l.Lead(none, func(context.Context) error { return nil }) }, eldest.ErrInvalid},
		{"lead without a function", "lead", leading.Key(), func() error { return l.Lead(s.ctx, nil) }, eldest.ErrInvalid},
		{"proclaim without a context", "proclaim", leading.Key(), func() error { return l.Proclaim(none, nil) }, eldest.ErrInvalid},
		{"proclaim too much", "proclaim", leading.Key(), func() error { return l.Proclaim(s.ctx, large) }, eldest.ErrInvalid},
		{"proclaim too much, the candidate", "proclaim", leading.Key(), func() error { return leading.Proclaim(s.ctx, large) }, eldest.ErrInvalid},
		{"guarded without a context", "guarded operation", leading.Key(), func() error { _, err := l.Txn(none).Commit(); return err }, eldest.ErrInvalid},
		{"await without register", "await", idle.Key(), func() error { _, err := idle.Await(s.ctx); return err }, eldest.ErrNotRegistered},
		{"withdraw without register", "withdraw", idle.Key(), func() error { return idle.Withdraw(s.ctx) }, eldest.ErrNotRegistered},
		{"proclaim without register", "proclaim", idle.Key(), func() error { return idle.Proclaim(s.ctx, nil) }, eldest.ErrNotRegistered},
		{"campaign while leading", "campaign", leading.Key(), func() error { _, err := leading.Campaign(s.ctx); return err }, eldest.ErrLeading},
		{"withdraw while leading", "withdraw", leading.Key(), func() error { return leading.Withdraw(s.ctx) }, eldest.ErrLeading},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.rec.Reset()
			err := tc.call()
			require.ErrorIs(t, err, tc.want)
			var op *eldest.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, tc.op, op.Op)
			require.Equal(t, s.election, op.Election)
			require.Equal(t, tc.key, op.Key)
			for _, part := range []string{tc.op, s.election, tc.key} {
				require.ErrorContains(t, err, part)
			}
			require.Zero(t, s.rec.Count(), "nothing was sent")
			require.NoError(t, l.Err(), "the tenure goes on")
		})
	}
}

// Names and keys from outside cannot write to a terminal.
func TestErrorsQuoteNames(t *testing.T) {
	s := newStage(t)
	s.election = "\x1b[31mred\n\xff"
	c := s.candidate("v")
	_, err := c.Await(s.ctx)
	require.NotContains(t, err.Error(), "\x1b")
	require.NotContains(t, err.Error(), "\n")
	require.NoError(t, s.lead(c).Resign(s.ctx), "but they are names like any other")
}

// A client that was closed, a permission that is missing: what cannot change is
// told at once, not retried until the context ends.
func TestClosedClient(t *testing.T) {
	s := newStage(t)
	session := s.session(s.admin)
	c := s.candidate("v", on(session))
	require.NoError(t, s.cli.Close())
	_, err := c.Campaign(s.ctx)
	require.Error(t, err)
	require.NoError(t, s.ctx.Err(), "long before the context ends")
	require.NoError(t, session.Close(s.ctx))
	require.NoError(t, c.Close(s.ctx))
}
