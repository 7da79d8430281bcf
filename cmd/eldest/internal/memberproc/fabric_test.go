package memberproc

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const peerHost = "192.0.2.2:2380"

// peered starts the fabric of m1, whose peer m2 is handler, and returns a client that uses the fabric
// as etcd's clients do.
func peered(t *testing.T, handler http.HandlerFunc) (*fabric, *http.Client) {
	t.Helper()
	peer := httptest.NewServer(handler)
	f, proxy, err := newFabric("m1", []Route{{Name: "m2", Host: peerHost, Real: strings.TrimPrefix(peer.URL, "http://")}})
	require.NoError(t, err)
	proxyURL, err := url.Parse(proxy)
	require.NoError(t, err)
	rt := &http.Transport{Proxy: http.ProxyURL(proxyURL)}
	t.Cleanup(func() {
		rt.CloseIdleConnections()
		require.NoError(t, f.server.Close())
		f.real.CloseIdleConnections()
		peer.Close()
	})
	return f, &http.Client{Transport: rt}
}

func get(ctx context.Context, cli *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return cli.Do(req)
}

func TestCutHoldsRequestUntilMended(t *testing.T) {
	served := make(chan string, 1)
	f, cli := peered(t, func(_ http.ResponseWriter, r *http.Request) { served <- r.Host })
	f.set([]Link{{From: "m1", To: "m2"}})

	done := make(chan error, 1)
	go func() {
		resp, err := get(context.Background(), cli, "http://"+peerHost+"/raft")
		if err == nil {
			err = resp.Body.Close()
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return len(f.counts()) == 1 }, 20*time.Second, time.Millisecond)
	require.Equal(t, []Held{{Link: Link{From: "m1", To: "m2"}, Count: 1}}, f.counts())
	require.Empty(t, served)
	f.set(nil)
	require.NoError(t, <-done)
	require.Equal(t, peerHost, <-served, "the peer must see its own name")
}

func TestCutTheOtherWayHoldsPiecesOfTheReply(t *testing.T) {
	more := make(chan bool)
	f, cli := peered(t, func(w http.ResponseWriter, _ *http.Request) {
		for range more {
			_, _ = io.WriteString(w, "piece\n")
			w.(http.Flusher).Flush()
		}
	})
	go func() { more <- true }()
	resp, err := get(t.Context(), cli, "http://"+peerHost+"/raft/stream")
	require.NoError(t, err)
	r := bufio.NewReader(resp.Body)
	_, err = r.ReadString('\n') // pieces arrive one by one, not all at the end
	require.NoError(t, err)

	f.set([]Link{{From: "m2", To: "m1"}})
	more <- true
	require.Eventually(t, func() bool { return len(f.counts()) == 1 }, 20*time.Second, time.Millisecond)
	f.set(nil)
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "piece\n", line)
	close(more)
	_, err = io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

func TestSenderMayGiveUp(t *testing.T) {
	f, cli := peered(t, func(http.ResponseWriter, *http.Request) { t.Error("a request got through") })
	f.set([]Link{{From: "m1", To: "m2"}})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := get(ctx, cli, "http://"+peerHost+"/raft") //nolint:bodyclose // there is none
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestFabricAnswersByItself(t *testing.T) {
	f, cli := peered(t, func(http.ResponseWriter, *http.Request) {})
	f.starting.Store(true)
	for url, want := range map[string]int{
		"http://192.0.2.9:2380/raft":      http.StatusBadGateway,
		"http://" + peerHost + "/members": http.StatusServiceUnavailable,
		"http://" + peerHost + "/raft":    http.StatusOK,
	} {
		resp, err := get(t.Context(), cli, url)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, url)
	}
}

func TestConfigure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m1.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"name": "m1", "heartbeat-interval": 10, "routes": [{"name": "m2", "host": "a:1", "real": "b:2"}], "cut": [{"from": "m1", "to": "m2"}]}`), 0o600))
	cfg, more, err := configure([]string{file})
	require.NoError(t, err)
	require.Equal(t, "m1", cfg.Name)
	require.EqualValues(t, 10, cfg.TickMs)
	require.Equal(t, extra{Routes: []Route{{Name: "m2", Host: "a:1", Real: "b:2"}}, Cut: []Link{{From: "m1", To: "m2"}}}, more)
	for _, bad := range [][]string{nil, {file, "surplus"}, {file + "x"}} {
		_, _, err := configure(bad)
		require.Error(t, err)
	}
}
