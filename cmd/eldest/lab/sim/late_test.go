package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// A registration that arrives when its candidate has long given up, over a
// connection that only the server still believes in, leaves no ghost although
// the session goes on living (regression 4).
func TestLateRegistrationLeavesNoGhost(t *testing.T) {
	rig.Run(t, func(w *rig.World) {
		ctx := w.T.Context()
		s := newStage(w, contender.Ours{}, 10*time.Second)
		h := w.Host("a")
		a := &actor{stage: s, name: "a", host: h, clock: newClock(0)}
		session, err := a.contender().Open(ctx, h.Client, s.ttl)
		require.NoError(w.T, err)
		c, err := session.Candidate(electionName, "a")
		require.NoError(w.T, err)
		before := w.Server.Rev()

		h.Delay(rig.Out, time.Second)
		campaign, giveUp := context.WithTimeout(ctx, 100*time.Millisecond)
		defer giveUp()
		_, err = c.Campaign(campaign)
		require.ErrorIs(w.T, err, context.DeadlineExceeded)
		h.Drop()
		h.Heal()

		time.Sleep(5 * time.Second)
		changes, _ := w.Server.Tap.Changes()
		require.NotEmpty(w.T, changes, "INVALID: the registration never arrived")
		require.Greater(w.T, changes[0].Rev, before)
		require.Equal(w.T, changes[0].Rev, changes[0].Create, "the first change is the late registration")
		require.Empty(w.T, s.queue(), "a ghost; the changes: %v", changes)
		require.True(w.T, session.Usable(), "INVALID: the session ended, and took the key with it")
		require.NoError(w.T, session.Close(ctx))
	})
}
