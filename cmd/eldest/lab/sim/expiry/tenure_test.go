package expiry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// G3: nobody renews any more, and the tenure ends here, at the deadline, before the lease can
// there. What is asked of it afterwards is refused for the session's end, not the tenure's.
//
// Broken by a tenure that does not end with its session, and by a session without a deadline.
func TestTenureEndsByTheDeadline(t *testing.T) {
	const ttl, margin = 30 * time.Second, 25 * time.Second
	rig.Run(t, func(w *rig.World) {
		ctx, host := w.T.Context(), w.Host("a")
		granted := w.Now()
		session := open(w, lease.Config{Lease: host.Client, TTL: ttl, Margin: margin,
			Renewal: func(time.Duration) lease.Renewal { return lease.Renewal{Every: time.Second, Timeout: time.Second} },
		})
		c, err := election.New(election.Config{Election: "deadline", Session: session, KV: host.Client, Watcher: host.Client})
		require.NoError(w.T, err)
		l, err := c.Campaign(ctx)
		require.NoError(w.T, err)
		host.Cut(rig.Both)
		require.True(w.T, l.Holds(0))
		require.False(w.T, l.Holds(ttl-margin))
		take(w, l.Done(), "the end of the tenure")
		require.Equal(w.T, ttl-margin, w.Now()-granted)
		require.ErrorIs(w.T, l.Err(), eldest.ErrSessionLost)
		require.ErrorIs(w.T, l.Resign(ctx), eldest.ErrNotLeading)
		require.ErrorIs(w.T, l.Resign(ctx), eldest.ErrSessionLost)
		_, err = c.Campaign(ctx)
		require.ErrorIs(w.T, err, eldest.ErrSessionLost, "of a session that is over, not of a tenure")
		require.NoError(w.T, c.Close(ctx))
	})
}
