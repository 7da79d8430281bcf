package election_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A candidate steps back before the reply to its proclaim: the value went with the old
// key, and whoever proclaimed is told so, or finds it at the new place.
func TestStepBackDuringAProclaim(t *testing.T) {
	s := newStage(t)
	s.lead(s.candidate("leader"))
	c, g := s.gated("before")
	_, err := c.Register(s.Ctx)
	require.NoError(t, err)
	var stepped error
	g.on(nil, func(_ context.Context, err error) error {
		_, stepped = c.StepBack(s.Ctx)
		return err
	})
	err = c.Proclaim(s.Ctx, []byte("after"))
	require.NoError(t, stepped)
	require.ErrorIs(t, err, eldest.ErrNotRegistered)
	require.ErrorIs(t, err, eldest.ErrSteppedBack)
	require.Equal(t, "before", s.value(c.Key()))
	require.NoError(t, c.Proclaim(s.Ctx, []byte("after")))
	require.NoError(t, etcdtest.Err(c.StepBack(s.Ctx)))
	require.Equal(t, "after", s.value(c.Key()))
}

// A step back is asked for at the moment at which the campaign ends: it is taken or
// refused, and nobody waits for one that nobody takes.
func TestStepBackAtTheEndOfACampaign(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.lead(s.candidate("leader"))
	c := s.candidate("v")
	for range 60 {
		ctx, cancel := context.WithCancel(s.Ctx)
		waiting := s.campaigning(ctx, c)
		s.Until("it waits", func() bool { return c.Status().Token > 0 })
		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() {
				<-ctx.Done()
				for s.Ctx.Err() == nil {
					if _, err := c.StepBack(s.Ctx); err != nil {
						return
					}
				}
			})
		}
		cancel()
		require.ErrorIs(t, get(s, waiting).err, context.Canceled)
		asking.Wait()
		require.NoError(t, s.Ctx.Err(), "somebody waited for a step that nobody takes")
	}
}
