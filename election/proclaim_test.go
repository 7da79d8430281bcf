package election_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

// Row 24.
func TestProclaimBeforeAndAfterTheWin(t *testing.T) {
	s := newStage(t)
	elder := s.lead(s.candidate("elder"))
	c := s.candidate("registered")
	require.ErrorIs(t, c.Proclaim(s.ctx, []byte("x")), eldest.ErrNotRegistered)
	place, err := c.Register(s.ctx)
	require.NoError(t, err)
	require.Equal(t, "registered", string(s.value(c.Key())))

	s.watched(2) // the own key of each
	s.rec.Reset()
	require.NoError(t, c.Proclaim(s.ctx, []byte("waiting")))
	require.Equal(t, []string{"Txn"}, s.rec.Methods(), "one request")
	require.Equal(t, "waiting", string(s.value(c.Key())))
	require.Equal(t, []string{elder.Key(), c.Key()}, s.queue(), "its place stays")

	require.NoError(t, elder.Resign(s.ctx))
	l, err := c.Await(s.ctx)
	require.NoError(t, err)
	require.Equal(t, place.Token, l.Token(), "and its token")
	require.NoError(t, l.Proclaim(s.ctx, []byte("leading")))
	require.Equal(t, "leading", string(s.value(c.Key())))
	require.NoError(t, c.Proclaim(s.ctx, []byte("by the candidate")))
	require.Equal(t, "by the candidate", string(s.value(c.Key())))
	require.NoError(t, l.Err())

	// The value proclaimed last is the one of the next campaign.
	require.NoError(t, l.Resign(s.ctx))
	s.lead(c)
	require.Equal(t, "by the candidate", string(s.value(c.Key())))
}

// The caller's slice is the caller's again as soon as a call returns.
func TestValueIsCopied(t *testing.T) {
	s := newStage(t)
	value := []byte("first")
	c := s.candidate("", func(cfg *election.Config) { cfg.Value = value })
	value[0] = 'X'
	l := s.lead(c)
	require.Equal(t, "first", string(s.value(c.Key())))
	value = []byte("second")
	require.NoError(t, l.Proclaim(s.ctx, value))
	value[0] = 'X'
	require.NoError(t, l.Resign(s.ctx))
	s.lead(c)
	require.Equal(t, "second", string(s.value(c.Key())))
}

// Row 24 and regression 20: after the loss nothing is written, and the error is of
// the same type each time, the first one included, which may come before the news.
func TestProclaimAfterLoss(t *testing.T) {
	s := newStage(t)
	deaf := &deafWatcher{Watcher: s.cli}
	c := s.candidate("old", func(cfg *election.Config) { cfg.Watcher = deaf })
	l := s.lead(c)
	s.remove(c.Key())
	require.NoError(t, l.Err(), "nobody has told us")
	for range 3 {
		err := l.Proclaim(s.ctx, []byte("late"))
		require.ErrorIs(t, err, eldest.ErrDeposed)
		require.ErrorIs(t, err, eldest.ErrNotLeading)
		require.ErrorIs(t, l.Err(), eldest.ErrDeposed, "what was found ends the tenure")
	}
	require.Empty(t, s.queue())

	l = s.lead(c)
	s.remove(c.Key())
	for range 3 {
		require.ErrorIs(t, c.Proclaim(s.ctx, []byte("late")), eldest.ErrDeposed)
	}
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
}
