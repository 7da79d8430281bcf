package election_test

import (
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
	l, err := c.Campaign(s.Ctx)
	require.NoError(t, err)
	seen := eldest.Candidate{Key: l.Key(), Token: l.Token()}

	later := seen
	later.Token++
	require.NoError(t, election.Evict(s.Ctx, s.Admin, s.Election, later), "a life that is not there")
	require.NoError(t, l.Err())
	require.NoError(t, election.Evict(s.Ctx, s.Admin, s.Election, seen))
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)

	again, err := c.Campaign(s.Ctx)
	require.NoError(t, err)
	require.NoError(t, election.Evict(s.Ctx, s.Admin, s.Election, seen), "the earlier life, again")
	require.NoError(t, again.Proclaim(s.Ctx, []byte("still here")))
}
