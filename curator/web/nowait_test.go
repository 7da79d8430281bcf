package web

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Config.Wait bounds waits. A request that need not wait, because the leader is known and
// connected, succeeds however short it is.
//
// Fails if the end of the wait cancels a request that is being sent.
func TestNoWaitIsNeeded(t *testing.T) {
	_, follower, _ := pair(t, hello)
	require.Equal(t, "hello", follower.get().body) // connected
	follower.cfg.Wait = time.Nanosecond
	for range 300 {
		out := follower.get()
		require.Equal(t, http.StatusOK, out.StatusCode, out.body)
	}
}
