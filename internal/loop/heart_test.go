package loop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/core"
)

// An answer that would be a win counts only in the stretch in which it was requested.
func TestWinsOfAnotherStretch(t *testing.T) {
	now := 10 * time.Second
	over, end := context.WithCancel(context.Background())
	end() // nothing must be sent
	s := &Session{ctx: over, beats: Heartbeats{Now: func() time.Duration { return now }, Silent: func() error { return nil }}, tasks: newTasks()}
	c := &Candidate{session: s, heart: &heart{session: s, state: core.Heart{Pulse: core.Certain, Stretch: 2, Deadline: 11 * time.Second}}}
	for name, a := range map[string]struct {
		kind    core.Kind
		p       core.Position
		stretch uint64
		kept    bool
	}{
		"a look of this one":      {core.Looked, core.Position{Complete: true}, 2, true},
		"a look of an earlier":    {core.Looked, core.Position{Complete: true}, 1, false},
		"a survey of an earlier":  {core.Surveyed, core.Position{Complete: true}, 1, false},
		"somebody is older still": {core.Looked, core.Position{Complete: true, Elders: []core.Elder{{Key: "e", Token: 1}}}, 1, true},
		"it is not known":         {core.Looked, core.Position{}, 1, true},
	} {
		told := answer{Event: core.Event{Kind: a.kind, Token: 5, Position: a.p}, stretch: a.stretch}
		c.inStretch(&told)
		if a.kept {
			require.Equal(t, a.kind, told.Kind, name)
		} else {
			require.Equal(t, core.Undone, told.Kind, name)
		}
	}
	c.heart.state.Pulse = core.Unsure
	look := answer{Event: core.Event{Kind: core.Looked, Token: 5, Position: core.Position{Complete: true}}, stretch: 2}
	c.inStretch(&look)
	require.Equal(t, core.Undone, look.Kind, "the stretch is over")
}

// A value that is invalid, or publishes less than is allowed, evicts no candidate.
func TestTimeout(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"nonce 1 1s": time.Second, "nonce 2 500ms": 500 * time.Millisecond, "nonce 3 499ms": 0, "nonce 4 -1s": 0,
		"": 0, "1s": 0, "nonce 1 1s more": 0, "nonce 1 soon": 0,
	} {
		require.Equal(t, want, timeout(value), value)
	}
}
