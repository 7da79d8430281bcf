package elector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Bad input is refused by New, before anything is sent.
func TestInvalid(t *testing.T) {
	rec := &etcdtest.Recorder{}
	cli := etcdtest.Shared(t).Client(t, rec.Attach)
	good := config("e", "n", cli)
	for name, bad := range map[string]func(*elector.Config){
		"no election":                    func(c *elector.Config) { c.Election = "" },
		"nested election":                func(c *elector.Config) { c.Election = "a/b" },
		"no node id":                     func(c *elector.Config) { c.NodeID = "" },
		"no node id, whatever the codec": func(c *elector.Config) { c.NodeID, c.Codec = "", nameless{} },
		"no source":                      func(c *elector.Config) { c.Source = nil },
		"lease given":                    func(c *elector.Config) { c.Session.Lease = cli },
		"majority given":                 func(c *elector.Config) { c.Session.Majority = cli },
		"negative TTL":                   func(c *elector.Config) { c.Session.TTL = -1 },
		"margin over the TTL":            func(c *elector.Config) { c.Session.Margin = time.Hour },
		"candidate of another election":  func(c *elector.Config) { c.Candidate.Election = "another" },
		"candidate's client":             func(c *elector.Config) { c.Candidate.KV = cli },
		"candidate's value":              func(c *elector.Config) { c.Candidate.Value = []byte("v") },
		"candidate's turn":               func(c *elector.Config) { c.Candidate.Turn = election.NewTurn() },
		"candidate's timeout":            func(c *elector.Config) { c.Candidate.Timeout = -1 },
		"candidate's session":            func(c *elector.Config) { c.Candidate.Session = &lease.Session{} },
		"observer's client":              func(c *elector.Config) { c.Observer.KV = cli },
		"observer's timeout":             func(c *elector.Config) { c.Observer.Timeout = -1 },
		"drain":                          func(c *elector.Config) { c.Drain = -1 },
		"leave":                          func(c *elector.Config) { c.Leave = -1 },
		"stable":                         func(c *elector.Config) { c.Stable = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			bad(&cfg)
			e, err := elector.New(cfg)
			require.ErrorIs(t, err, eldest.ErrInvalid)
			require.Nil(t, e)
			var op *eldest.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, cfg.Election, op.Election)
		})
	}
	e, err := elector.New(good)
	require.NoError(t, err)
	require.ErrorIs(t, e.Run(nil, func(context.Context, *elector.Leadership) error { return nil }), eldest.ErrInvalid) //nolint:staticcheck // nil on purpose
	require.ErrorIs(t, e.Run(context.Background(), nil), eldest.ErrInvalid)
	_, err = e.Watch().Next(nil) //nolint:staticcheck // nil on purpose
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.ErrorContains(t, err, good.Election)
	_, err = e.Watch().NextWhere(t.Context(), nil)
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.Empty(t, rec.Calls())
}

// nameless is a codec that has no place for a node's name.
type nameless struct{}

func (nameless) Encode(id identity.Identity) ([]byte, error) { return []byte(id.Address), nil }

func (nameless) Decode(value []byte) (identity.Identity, error) {
	return identity.Identity{Address: string(value)}, nil
}
