package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

// A bad address is refused before anything is sent, on every command that has the flag,
// with what to write instead.
func TestBadHTTP(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	for _, command := range httpCommands {
		for address, reason := range map[string]string{
			"":                      "want PORT or HOST:PORT, as in 9301 or 127.0.0.1:9301",
			"x":                     `"x" is no port`,
			"99999":                 `"99999" is no port`,
			"127.0.0.1":             `"127.0.0.1" is no port`,
			"127.0.0.1:":            `"" is no port`,
			"a:b:c":                 "want PORT or HOST:PORT",
			taken.Addr().String():   "port 0 is a free one",
			"192.0.2.1:9301":        "port 0 is a free one",
			"no-such-host.invalid:": `"" is no port`,
		} {
			t.Run(command.before[0]+" "+address, func(t *testing.T) {
				code, stdout, stderr := runLine(t, command.with("--http="+address, "--endpoints", "127.0.0.1:1")...)
				require.Equal(t, cli.ExitUsage, code, stderr)
				require.Contains(t, stderr, fmt.Sprintf("--http %q", address))
				require.Contains(t, stderr, reason)
				require.Empty(t, stdout)
			})
		}
	}
}

// httpCommand is a command line that takes --http, in two parts between which flags go.
type httpCommand struct{ before, after []string }

var httpCommands = []httpCommand{
	{before: []string{"campaign", "e"}},
	{before: []string{"service", "node", "e", "n1"}},
}

func (c httpCommand) with(flags ...string) []string { return slices.Concat(c.before, flags, c.after) }

// served returns where a process says it serves.
func served(p *clitest.Process) string {
	p.T.Helper()
	var found []string
	where := regexp.MustCompile(`serving (http://127\.0\.0\.1:\d+)/metrics`)
	p.Eventually(func() bool {
		found = where.FindStringSubmatch(p.Errors())
		return found != nil
	}, 5*time.Millisecond, "%q never said where it serves", p.Args[1:])
	return found[1]
}

// get asks a face, and returns the code and the body.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// role asks who leads.
func role(t *testing.T, url string) (code int, o object) {
	t.Helper()
	code, body := get(t, url+"/leader")
	require.NoError(t, json.Unmarshal([]byte(body), &o), body)
	return code, o
}

// Two candidates as real processes: the faces say who leads, in a hand-over and while
// etcd is away, and are gone with the processes.
func TestCampaignServesHTTP(t *testing.T) {
	t.Parallel()
	etcd := own(t)
	a := etcd.start("campaign", "e", "anna", "--json", "--ttl", "30s", "--http", "0")
	atA := served(a)
	a.Event("registered")
	led := a.Event("leader")
	b := etcd.start("campaign", "e", "bert", "--json", "--ttl", "30s", "--http", ":0")
	atB := served(b)
	b.Event("registered")
	b.Event("waiting")

	code, o := role(t, atA)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, object{"role": "leading", "node": "anna", "leader": "anna", "address": "", "token": led["token"]}, o)
	require.Eventually(t, func() bool { code, o = role(t, atB); return o["role"] == "following" }, patience, 5*time.Millisecond)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, object{"role": "following", "node": "bert", "leader": "anna", "address": "", "token": led["token"]}, o)
	for _, at := range []string{atA, atB} {
		code, body := get(t, at+"/healthz")
		require.Equal(t, http.StatusOK, code, body)
	}
	require.Eventually(t, func() bool { // its observer hears of the other one in its own time
		_, body := get(t, atA+"/metrics")
		return strings.Contains(body, `eldest_state{election="e",state="leading"} 1`) &&
			strings.Contains(body, fmt.Sprintf(`eldest_token{election="e"} %v`, led["token"])) &&
			strings.Contains(body, `eldest_queue_length{election="e"} 2`)
	}, patience, 5*time.Millisecond)

	a.Signal(syscall.SIGTERM)
	a.Event("resigned")
	a.Exits(cli.ExitOK)
	_, err := net.Dial("tcp", strings.TrimPrefix(atA, "http://"))
	require.Error(t, err, "nobody listens any more")
	b.Event("leader")
	code, _ = role(t, atB)
	require.Equal(t, http.StatusOK, code)

	etcd.halt()
	code, body := get(t, atB+"/healthz")
	require.Equal(t, http.StatusOK, code, "the lease is certain for a while: %s", body)
	require.NoError(t, etcd.Member(0).Cont())
}

// While etcd is away from the start the face is there already: not leading, not yet in
// trouble.
func TestHTTPBeforeEtcdAnswers(t *testing.T) {
	t.Parallel()
	for _, command := range httpCommands {
		p := nowhere(t).start(command.with("--http", "0")...)
		at := served(p)
		code, body := get(t, at+"/healthz")
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, body, `"session":"none"`)
		code, o := role(t, at)
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "neither", o["role"])
		p.Signal(syscall.SIGTERM)
		p.Over()
		require.Equal(t, cli.ExitOK, p.ProcessState.ExitCode(), p.Errors())
	}
}

// A node's face has its curator's answer, and its numbers.
func TestServiceNodeServesHTTP(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, address := etcd.node("a", "--http", "0")
	led := becomes(a, "leading")
	b, _ := etcd.node("b", "--http", "0")
	becomes(b, "following")
	code, o := role(t, served(a))
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, object{"role": "leading", "node": "a", "leader": "a", "address": address, "token": led["token"]}, o)
	code, o = role(t, served(b))
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, object{"role": "following", "node": "b", "leader": "a", "address": address, "token": led["token"]}, o)
	require.Eventually(t, func() bool {
		_, body := get(t, served(b)+"/metrics")
		return strings.Contains(body, `eldest_queue_length{election="shop"} 2`) &&
			strings.Contains(body, `eldest_state{election="shop",state="following"} 1`) &&
			strings.Contains(body, fmt.Sprintf(`eldest_leader_token{election="shop"} %v`, led["token"]))
	}, patience, 5*time.Millisecond)
	code, _ = get(t, served(a)+"/healthz")
	require.Equal(t, http.StatusOK, code)
	b.Signal(syscall.SIGTERM)
	a.Signal(syscall.SIGTERM)
	b.Over()
	a.Over()
}
