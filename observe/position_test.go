package observe_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// The position of a key: while it does not exist, each departure of an older candidate, the front,
// and its end. Younger candidates change nothing. It costs no request.
func TestPositions(t *testing.T) {
	s := newStage(t)
	o := s.observer(func(cfg *observe.Config) { cfg.Key = s.key(0xc) })
	positions := o.Positions()
	next := func() observe.Position {
		p, err := positions.Next(etcdtest.Context(t))
		require.NoError(t, err)
		return p
	}
	p := next()
	require.Equal(t, eldest.Nobody, p.Kind)
	require.Equal(t, -1, p.Ahead)
	a, _ := s.put(0xa, "a")
	require.Equal(t, a, next().Leader.Token)
	s.put(0xb, "b")
	s.put(0xc, "c")
	p = next()
	require.Equal(t, 2, p.Ahead)
	require.Equal(t, a, p.Leader.Token)
	sub := o.Subscribe()
	require.Equal(t, a, s.next(sub).Leader.Token)

	s.put(0xd, "d") // no change of the position
	s.put(0xc, "c2")
	rev := s.remove(0xb)
	p = next()
	require.Equal(t, 1, p.Ahead, "it is next")
	require.Equal(t, a, p.Leader.Token)
	require.Equal(t, rev, p.Revision)
	over, cancel := context.WithCancel(s.Ctx)
	cancel()
	require.ErrorIs(t, etcdtest.Err(sub.Next(over)), context.Canceled, "the state is the same")
	s.remove(0xa)
	p = next()
	require.Equal(t, 0, p.Ahead)
	require.Equal(t, s.key(0xc), p.Leader.Key)
	s.remove(0xc)
	p = next()
	require.Equal(t, -1, p.Ahead)
	require.Equal(t, s.key(0xd), p.Leader.Key)
	require.Equal(t, 2, s.Rec.Count(), "one watch and one snapshot")

	o.Close()
	p, err := positions.Next(etcdtest.Context(t))
	require.ErrorIs(t, err, eldest.ErrClosed)
	require.Equal(t, -1, p.Ahead)
	_, err = positions.Next(nil) //nolint:staticcheck // bad input
	require.ErrorIs(t, err, eldest.ErrInvalid)
}

// Without a key, positions are the states.
func TestPositionsWithoutAKey(t *testing.T) {
	s := newStage(t)
	s.put(0xa, "a")
	p, err := s.observer().Positions().Next(etcdtest.Context(t))
	require.NoError(t, err)
	require.Equal(t, eldest.Led, p.Kind)
	require.Equal(t, -1, p.Ahead)
}
