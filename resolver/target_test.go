package resolver

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest"
)

func parse(t testing.TB, target string) grpcresolver.Target {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	return grpcresolver.Target{URL: *u}
}

// An invalid target is refused, and the error contains the reason.
func TestTargetRefused(t *testing.T) {
	for target, why := range map[string]string{
		"eldest:reports":                  "three slashes",
		"eldest:/":                        "no name",
		"eldest:///":                      "no name",
		"eldest://":                       "three slashes",
		"eldest://reports":                "has a host",
		"eldest://host:1/reports":         "has a host",
		"eldest://me@/reports":            "has a host",
		"eldest:///a/b":                   "contains '/'",
		"eldest:///a%2Fb":                 "contains '/'",
		"eldest:////a":                    "contains '/'",
		"eldest:///a/":                    "contains '/'",
		"eldest:///a?b":                   "escaped",
		"eldest:///a?":                    "escaped",
		"eldest:///a#b":                   "escaped",
		"dns:///reports":                  "scheme",
		Target(strings.Repeat("x", 1025)): "1025 bytes",
	} {
		_, err := electionOf(parse(t, target))
		require.ErrorIs(t, err, eldest.ErrInvalid, target)
		var op *eldest.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "resolve", op.Op)
		require.ErrorContains(t, err, why, target)
	}
}

// FuzzTarget: each name has a target, and each target is parsed to its name or refused.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"reports", "a b", "50%", "%2F", "what?", "#1", "a:b", "a@b", "..", ".", "\xff\x00", "Käse", "a+b", strings.Repeat("x", 1024), "a/b", "",
	} {
		f.Add(seed)
	}
	require.Equal(f, "eldest:///reports", Target("reports"))
	f.Fuzz(func(t *testing.T, election string) {
		u, err := url.Parse(Target(election))
		require.NoError(t, err)
		got, err := electionOf(grpcresolver.Target{URL: *u})
		if err != nil {
			require.ErrorIs(t, err, eldest.ErrInvalid)
			require.True(t, election == "" || len(election) > 1024 || strings.Contains(election, "/"), "%q: %v", election, err)
			return
		}
		require.Equal(t, election, got)
	})
}
