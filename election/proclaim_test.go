package election_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 24.
func TestProclaimBeforeAndAfterTheWin(t *testing.T) {
	s := newStage(t)
	elder := s.lead(s.candidate("elder"))
	c := s.candidate("registered")
	require.ErrorIs(t, c.Proclaim(s.Ctx, []byte("x")), eldest.ErrNotRegistered)
	place, err := c.Register(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, "registered", s.value(c.Key()))

	s.watched(2) // the own key of each
	s.Rec.Reset()
	require.NoError(t, c.Proclaim(s.Ctx, []byte("waiting")))
	require.Equal(t, []string{"Txn"}, s.Rec.Methods(), "one request")
	require.Equal(t, "waiting", s.value(c.Key()))
	require.Equal(t, []string{elder.Key(), c.Key()}, s.Queue(), "its place stays")

	require.NoError(t, elder.Resign(s.Ctx))
	l, err := c.Await(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, place.Token, l.Token(), "and its token")
	require.NoError(t, l.Proclaim(s.Ctx, []byte("leading")))
	require.Equal(t, "leading", s.value(c.Key()))
	require.NoError(t, c.Proclaim(s.Ctx, []byte("by the candidate")))
	require.Equal(t, "by the candidate", s.value(c.Key()))
	require.NoError(t, l.Err())

	// The value proclaimed last is the one of the next campaign.
	require.NoError(t, l.Resign(s.Ctx))
	s.lead(c)
	require.Equal(t, "by the candidate", s.value(c.Key()))
}

// The caller's slice is the caller's again as soon as a call returns.
func TestValueIsCopied(t *testing.T) {
	s := newStage(t)
	value := []byte("first")
	c := s.candidate("", func(cfg *election.Config) { cfg.Value = value })
	value[0] = 'X'
	l := s.lead(c)
	require.Equal(t, "first", s.value(c.Key()))
	value = []byte("second")
	require.NoError(t, l.Proclaim(s.Ctx, value))
	value[0] = 'X'
	require.NoError(t, l.Resign(s.Ctx))
	s.lead(c)
	require.Equal(t, "second", s.value(c.Key()))
}

// Row 24 and regression 20: after the loss nothing is written, and the error is of
// the same type each time, the first one included, which may come before the news.
func TestProclaimAfterLoss(t *testing.T) {
	s := newStage(t)
	deaf := etcdtest.Deaf(s.Client)
	c := s.candidate("old", func(cfg *election.Config) { cfg.Watcher = deaf })
	l := s.lead(c)
	s.Remove(c.Key())
	require.NoError(t, l.Err(), "nobody has told us")
	for range 3 {
		err := l.Proclaim(s.Ctx, []byte("late"))
		require.ErrorIs(t, err, eldest.ErrDeposed)
		require.ErrorIs(t, err, eldest.ErrNotLeading)
		require.ErrorIs(t, l.Err(), eldest.ErrDeposed, "what was found ends the tenure")
	}
	require.Empty(t, s.Queue())

	l = s.lead(c)
	s.Remove(c.Key())
	for range 3 {
		require.ErrorIs(t, c.Proclaim(s.Ctx, []byte("late")), eldest.ErrDeposed)
	}
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
}
