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
