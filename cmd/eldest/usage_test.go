package main

import (
	"strings"
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

// Words that are too long for a script; all other bad usage is in usage.txtar.
func TestLongWords(t *testing.T) {
	long := strings.Repeat("x", 1<<20+1)
	requireUsage(t, "1048577 bytes", "campaign", "svc", long)
	requireUsage(t, "--value has 1048577 bytes", "run", "svc", "--value", long, "--", "true")
	requireUsage(t, "", "service", "node", "shop", long)
	_, stdout, stderr := runLine(t, "etcd", "member", "--name", "only-this")
	require.Contains(t, stderr, "needs")
	require.Empty(t, stdout)
}

func requireUsage(t testing.TB, reason string, args ...string) {
	t.Helper()
	code, stdout, stderr := runLine(t, args...)
	require.Equal(t, cli.ExitUsage, code, stderr)
	require.Empty(t, stdout)
	require.Contains(t, stderr, reason)
	require.Contains(t, stderr, "--help")
	require.NotContains(t, stderr, "secret")
}
