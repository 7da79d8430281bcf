package clitest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Browser is a client of the page of "eldest lab", without its scripts.
type Browser struct {
	t      testing.TB
	client *http.Client
	host   string // with the scheme
}

// Visit reads the line in which a lab with --json says that it serves, requires that it has the mode,
// and that it refuses requests without its token, and opens its page.
func Visit(t testing.TB, p *Process, mode string) *Browser {
	t.Helper()
	serving := p.Event("serving")
	require.Equal(t, mode, serving["mode"])
	require.NotEmpty(t, serving["endpoints"])
	address, _ := serving["address"].(string)
	host, _, ok := strings.Cut(address, "/?token=")
	require.True(t, ok, address)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	b := &Browser{t, &http.Client{Transport: transport, Timeout: 2 * Patience}, host}
	for _, path := range []string{"/", "/info", "/events", "/?token=wrong"} {
		code, body := b.Get(path)
		require.Equal(t, http.StatusForbidden, code, body)
	}
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b.client.Jar = jar
	code, body := b.Get(strings.TrimPrefix(address, host))
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, "<html")
	code, body = b.Get("/info")
	require.Equal(t, http.StatusOK, code, body)
	var info Object
	require.NoError(t, json.Unmarshal([]byte(body), &info))
	require.Equal(t, mode, info["mode"])
	return b
}

// Get returns what is at a path.
func (b *Browser) Get(path string) (code int, body string) {
	b.t.Helper()
	resp, err := b.client.Get(b.host + path)
	require.NoError(b.t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return resp.StatusCode, string(data)
}

// Do does an action, and returns the answer.
func (b *Browser) Do(action Object) (code int, body string) {
	b.t.Helper()
	data, err := json.Marshal(action)
	require.NoError(b.t, err)
	resp, err := b.client.Post(b.host+"/do", "application/json", strings.NewReader(string(data)))
	require.NoError(b.t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return resp.StatusCode, string(answer)
}

// Queue reads the events, from the first on, up to a queue of at least n places, and returns these.
func (b *Browser) Queue(n int) (places []Object) {
	b.t.Helper()
	resp, err := b.client.Get(b.host + "/events")
	require.NoError(b.t, err)
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		require.NoError(b.t, err)
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var events []struct{ Queue struct{ Places []Object } }
		require.NoError(b.t, json.Unmarshal([]byte(data), &events))
		for _, e := range events {
			if len(e.Queue.Places) >= n {
				return e.Queue.Places
			}
		}
	}
}
