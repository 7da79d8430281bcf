package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/core"
)

// A call while the key is being deleted sends no second request. After a failure it ends the pause.
func TestOneRequestAtATime(t *testing.T) {
	c := core.Candidate{Phase: core.Leaving, Token: 5, Doomed: 5, Asked: core.Ask{Request: core.Delete, Token: 5}}
	for _, call := range []core.Kind{core.Leave, core.Campaign} {
		c.Paused = false
		_, effects := core.Step(c, core.Event{Kind: call, Want: core.Lead})
		require.Zero(t, effects.Send, "%v", call)
		c.Paused = true
		_, effects = core.Step(c, core.Event{Kind: call, Want: core.Lead})
		require.Equal(t, c.Asked, effects.Send, "%v", call)
	}
}

// A place of which nothing is known is no win, however often etcd answers so: it is read again, after a
// pause from the second time on.
func TestUnknownPlaceIsNoWin(t *testing.T) {
	for _, want := range []core.Want{core.Lead, core.LeadNow} {
		c := core.Candidate{Phase: core.Entering, Want: want, Asked: core.Ask{Request: core.Register}}
		c, effects := core.Step(c, core.Event{Kind: core.Registered, Token: 5})
		require.Equal(t, core.Ask{Request: core.Look, Token: 5}, effects.Send)
		for range 3 {
			c, effects = core.Step(c, core.Event{Kind: core.Looked, Token: 5})
			require.True(t, effects.Pause)
			c, effects = core.Step(c, core.Event{Kind: core.Due})
			require.Equal(t, core.Ask{Request: core.Look, Token: 5}, effects.Send)
		}
		c, _ = core.Step(c, core.Event{Kind: core.Looked, Token: 5, Position: core.Position{Complete: true}})
		require.Equal(t, core.Leading, c.Phase)
	}
}
