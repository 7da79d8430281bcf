package main

import (
	"bytes"
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

func TestTable(t *testing.T) {
	left := []exclusion{{version: "3.4", suite: "mixed", reason: "it is the oldest"}}
	tab := table{suites: suites[:2], rows: []row{
		{version: "3.4.23", results: []result{{suite: "a", passed: true, took: 1400 * time.Millisecond}, {suite: "b", passed: true, left: left}}},
	}}
	require.False(t, tab.failed())
	tab.rows[0].results = append(tab.rows[0].results, result{suite: "c", took: time.Second})
	require.True(t, tab.failed())
	var out bytes.Buffer
	tab.write(&out)
	require.Equal(t, `
| etcd | acceptance | etcdtest |
|---|---|---|
| 3.4.23 | passed (1 s) | left out | FAILED |

left out with 3.4: mixed: it is the oldest
`, out.String())
}
