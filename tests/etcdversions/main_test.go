package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// Each exclusion belongs to a version and a suite that exist, and has a reason.
func TestExclusions(t *testing.T) {
	for _, e := range exclusions {
		_, err := named(e.version)
		require.NoError(t, err)
		_, err = pick(suites, e.suite, func(s suite) string { return s.name })
		require.NoError(t, err)
		require.NotEmpty(t, e.reason)
	}
	_, err := pick(suites, "acceptance,nothing", func(s suite) string { return s.name })
	require.Error(t, err)
}

func TestResults(t *testing.T) {
	for want, r := range map[string]result{
		"a: passed (1s)": {suite: "a", passed: true, took: 1400 * time.Millisecond},
		"b: left out\n\tleft out with 3.4: b: it is the oldest": {
			suite: "b", passed: true, left: []exclusion{{version: "3.4", suite: "b", reason: "it is the oldest"}},
		},
		"c: FAILED": {suite: "c", took: time.Second},
	} {
		require.Equal(t, want, r.String())
	}
}

// What a run would do: the chosen versions and suites, and the reasons for all that is left out.
func TestList(t *testing.T) {
	*versions, *chosen, *list = "3.4,3.7", "acceptance", true
	t.Cleanup(func() { *versions, *chosen, *list = "", "", false })
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	require.True(t, strings.HasPrefix(out.String(),
		"etcd 3.4: Debian's package etcd-server\netcd 3.7: the module proxy, v3.7"), out.String())
	require.Contains(t, out.String(), "\nsuite acceptance\nleft out with 3.4: library ^Test")
	*versions = "3.1"
	require.ErrorContains(t, run(t.Context(), &out), "does not exist")
}
