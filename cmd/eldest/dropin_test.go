package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/compat/concurrency"
)

// The commands name an election of the drop-in by its prefix: what stands before the last
// slash is the namespace. docs/drop-in.md has the table.
func TestCommandsNameElectionsByTheirPrefix(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	session, err := concurrency.NewSession(etcd.client)
	require.NoError(t, err)
	defer func() { _ = session.Close() }()
	for prefix, line := range map[string]string{
		"svc":      "leader svc --json",
		"app/svc":  "leader svc --json --namespace app/",
		"/app/svc": "leader svc --json --namespace /app/",
		"/svc":     "leader svc --json --namespace /",
	} {
		require.NoError(t, concurrency.NewElection(session, prefix).Campaign(etcd.bounded(), "value of "+prefix))
		code, stdout, stderr := etcd.line(strings.Fields(line)...)
		require.Equal(t, cli.ExitOK, code, stderr)
		var o object
		require.NoError(t, json.Unmarshal([]byte(stdout), &o))
		require.Equal(t, "value of "+prefix, o["value"], line)
	}
	require.NoError(t, concurrency.NewElection(session, "end/").Campaign(etcd.bounded(), "v"))
	for line, code := range map[string]int{
		"leader end": cli.ExitNobody, "leader end/": cli.ExitUsage, "leader app/svc": cli.ExitUsage, "leader other": cli.ExitNobody,
	} {
		got, _, stderr := etcd.line(strings.Fields(line)...)
		require.Equal(t, code, got, "%s: %s", line, stderr)
	}
}
