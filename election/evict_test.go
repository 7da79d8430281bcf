package election_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

// Evict removes a candidate in the life that was seen and in no other, and the evicted
// one learns of it.
func TestEvict(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l, err := c.Campaign(s.ctx)
	require.NoError(t, err)
	seen := eldest.Candidate{Key: l.Key(), Token: l.Token()}

	later := seen
	later.Token++
	require.NoError(t, election.Evict(s.ctx, s.admin, s.election, later), "a life that is not there")
	require.NoError(t, l.Err())
	require.NoError(t, election.Evict(s.ctx, s.admin, s.election, seen))
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)

	again, err := c.Campaign(s.ctx)
	require.NoError(t, err)
	require.NoError(t, election.Evict(s.ctx, s.admin, s.election, seen), "the earlier life, again")
	require.NoError(t, again.Proclaim(s.ctx, []byte("still here")))
}

// Bad input is refused before anything is sent.
func TestEvictInvalid(t *testing.T) {
	s := newStage(t)
	good := eldest.Candidate{Key: s.election + "/1", Token: 1}
	for name, evict := range map[string]func() error{
		"no context":   func() error { return election.Evict(nil, s.cli, s.election, good) }, //nolint:staticcheck // nil on purpose
		"no client":    func() error { return election.Evict(s.ctx, nil, s.election, good) },
		"no token":     func() error { return election.Evict(s.ctx, s.cli, s.election, eldest.Candidate{Key: good.Key}) },
		"bad election": func() error { return election.Evict(s.ctx, s.cli, "a/b", good) },
		"foreign key":  func() error { return election.Evict(s.ctx, s.cli, "another", good) },
	} {
		err := evict()
		require.ErrorIs(t, err, eldest.ErrInvalid, name)
		var op *eldest.OpError
		require.ErrorAs(t, err, &op, name)
		require.Equal(t, "evict", op.Op)
	}
	require.Empty(t, s.rec.Calls())
	dead, cancel := context.WithCancel(s.ctx)
	cancel()
	require.ErrorIs(t, election.Evict(dead, s.cli, s.election, good), context.Canceled)
}
