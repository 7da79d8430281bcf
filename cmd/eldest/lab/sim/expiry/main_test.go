package expiry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a session on the clock of the bubble, because CLOCK_BOOTTIME is not virtual.
func open(w *rig.World, cfg lease.Config) *lease.Session {
	w.T.Helper()
	cfg.Clock = lease.Monotonic()
	s, err := lease.Open(w.T.Context(), cfg)
	require.NoError(w.T, err)
	w.T.Cleanup(s.Abandon)
	return s
}

// patience limits each wait: virtual time costs nothing, but a wait for something that never comes
// would not end, because leases are renewed meanwhile.
const patience = 5 * time.Minute

// take waits for a value.
func take[T any](w *rig.World, from <-chan T, what string) T {
	w.T.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		require.FailNow(w.T, "not in time: "+what)
		panic("unreachable")
	}
}

// moment returns a channel that delivers the instant at which closed is closed.
func moment(w *rig.World, closed <-chan struct{}) <-chan time.Duration {
	at := make(chan time.Duration, 1)
	go func() {
		<-closed
		at <- w.Now()
	}()
	return at
}
