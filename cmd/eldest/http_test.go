package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
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
	for _, command := range []string{"campaign e --http=", "service node e n1 --http=", "run e --http="} {
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
			t.Run(command+address, func(t *testing.T) {
				line := append(strings.Fields(command+address), "--endpoints", "127.0.0.1:1")
				if line[0] == "run" {
					line = append(line, "--", "true")
				}
				code, stdout, stderr := runLine(t, line...)
				require.Equal(t, cli.ExitUsage, code, stderr)
				require.Contains(t, stderr, fmt.Sprintf("--http %q", address))
				require.Contains(t, stderr, reason)
				require.Empty(t, stdout)
			})
		}
	}
}

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
func get(t testing.TB, url string) (int, string) {
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
