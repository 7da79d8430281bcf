//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func init() {
	httpCommands = append(httpCommands, httpCommand{before: []string{"run", "e"}, after: []string{"--", "sleep", "1000"}})
}

// A program that runs while leading is shown like a candidate, round after round; the
// sockets are eldest's alone, and gone with it.
func TestRunServesHTTP(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	r := etcd.run("e", "--value", "me", "--restart", "always", "--http", "0", "--", "sleep", "1000")
	at := served(r.Process)
	led := r.event("leader")
	pid := r.pid()
	code, o := role(t, at)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, object{"role": "leading", "node": "me", "leader": "me", "address": "", "token": led["token"]}, o)
	code, body := get(t, at+"/healthz")
	require.Equal(t, http.StatusOK, code, body)

	require.NoError(t, handle(t, pid).Signal(syscall.SIGTERM)) // the program ends, and is restarted
	again := r.event("leader")
	require.Greater(t, again["token"], led["token"])
	code, o = role(t, at)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, again["token"], o["token"])
	require.Eventually(t, func() bool {
		_, body := get(t, at+"/metrics")
		return strings.Contains(body, `eldest_wins_total{election="e"} 2`) &&
			strings.Contains(body, `eldest_sessions_total{election="e"} 2`) &&
			strings.Contains(body, fmt.Sprintf(`eldest_token{election="e"} %v`, again["token"])) &&
			strings.Contains(body, `eldest_queue_length{election="e"} 1`)
	}, patience, 5*time.Millisecond)

	second := etcd.run("e", "--http", "0", "--", "sleep", "1000")
	elsewhere := served(second.Process)
	second.event("waiting")
	code, _ = role(t, elsewhere)
	require.Equal(t, http.StatusServiceUnavailable, code)
	second.Signal(syscall.SIGTERM)
	second.Over()
	r.Signal(syscall.SIGTERM)
	r.Over()
	for _, url := range []string{at, elsewhere} {
		_, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		require.Error(t, err)
	}
}
