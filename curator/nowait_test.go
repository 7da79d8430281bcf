package curator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Config.Wait bounds waits. A call that need not wait, because the leader is known and connected,
// succeeds however short it is.
//
// Fails if the end of the wait cancels a call that is being sent.
func TestNoWaitIsNeeded(t *testing.T) {
	everywhere(t, echoing, func(t *testing.T, n, _ *node) {
		n.answers("connected")
		n.cfg.Wait = time.Nanosecond
		for range 300 {
			require.NoError(t, <-n.ask("hello"))
		}
		for range 100 {
			stream := n.open(bidiMethod)
			stream.send("hello")
			stream.expect("hello")
			stream.closes()
		}
	})
}
