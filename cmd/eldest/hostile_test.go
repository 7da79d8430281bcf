package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/identity"
)

// All commands that print names, keys or values which others have chosen, on a real etcd.
func TestNamesAndValuesDoNothingToATerminal(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	name := clitest.Hostile
	node, err := identity.Protobuf{}.Encode(identity.Identity{
		NodeID: strings.ToValidUTF8(clitest.Hostile, "?"), Address: "\x1b[31mh:1", Instance: "\u202ei", TTL: time.Second,
	})
	require.NoError(t, err)
	observed := map[string]*clitest.Process{}
	for _, format := range []string{"--json=false", "--json"} {
		observed[format] = etcd.start("observe", name, format)
		clitest.RequireTame(t, "observe "+format, observed[format].Line())
	}
	// A foreign key, of which observers and candidates are told.
	_, err = etcd.client.Put(t.Context(), name+"/"+clitest.Hostile, clitest.Hostile)
	require.NoError(t, err)

	first := etcd.start("campaign", name, clitest.Hostile, "--ttl", "60s")
	for _, event := range []string{"registered", "leader"} {
		line := first.Line()
		require.Contains(t, line, event)
		clitest.RequireTame(t, "campaign", line)
	}
	second := etcd.start("campaign", name, "\u202e\x9b", "--json", "--ttl", "60s", "--http", "0")
	for _, event := range []string{"registered", "waiting"} {
		line := second.Line()
		require.Contains(t, line, event)
		clitest.RequireTame(t, "campaign --json", line)
	}
	at := served(second)
	require.Eventually(t, func() bool { // its observer has heard of the leader
		_, o := role(t, at)
		return o["leader"] == strings.ToValidUTF8(clitest.Hostile, "\ufffd")
	}, patience, 10*time.Millisecond, "/leader does not name the leader")
	for _, path := range []string{"/", "/healthz", "/leader"} {
		_, body := get(t, at+path)
		clitest.RequireTame(t, path, body)
	}
	// One whose value is that of a node of a service, with a name to match.
	lease, err := etcd.client.Grant(t.Context(), 60)
	require.NoError(t, err)
	_, err = etcd.client.Put(t.Context(), name+"/"+strconv.FormatInt(int64(lease.ID), 16), string(node))
	require.NoError(t, err)

	for _, line := range [][]string{
		{"leader", name}, {"list", name}, {"leader", name + "?"}, {"resign", name + "?", "--yes"},
		{"resign", name, clitest.Hostile, "--yes"}, {"resign", name, name + "/" + strconv.FormatInt(int64(lease.ID), 16), "--yes"},
		{"leader", name + "/"}, {"leader", name, "--endpoints", clitest.Hostile}, {"leader", name, "--endpoints", "127.0.0.1:1", "--user", clitest.Hostile + ":x", "--dial-timeout", "100ms"},
		{"leader", name, "--cacert", clitest.Hostile}, {"leader", name, "--" + clitest.Hostile}, {"leader", name, "--namespace", clitest.Hostile},
		{"leader", name, "--dial-timeout", clitest.Hostile}, {clitest.Hostile}, {"leader", name, clitest.Hostile}, {"campaign", name, "--ttl", clitest.Hostile},
		{"bench", clitest.Hostile}, {"bench", "handover", "--contender", clitest.Hostile}, {"bench", "report", "/no/such/" + clitest.Hostile},
		{"demo", clitest.Hostile}, {"chaos", clitest.Hostile, clitest.Hostile}, {"service", clitest.Hostile}, {"etcd", clitest.Hostile}, {"etcd", "--members", clitest.Hostile},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			_, stdout, stderr := etcd.line(append(line[:len(line):len(line)], more...)...)
			clitest.RequireTame(t, strings.Join(line[:1], " ")+" stdout", stdout)
			clitest.RequireTame(t, strings.Join(line[:1], " ")+" stderr", stderr)
			require.NotEmpty(t, stdout+stderr, "%q", line)
		}
	}
	// What is escaped means the same to a program.
	_, stdout, _ := etcd.line("leader", name, "--json")
	leader := parse[object](t, stdout)
	require.Equal(t, strings.ToValidUTF8(clitest.Hostile, "\ufffd"), leader["value"])
	require.Equal(t, strings.ToValidUTF8(clitest.Hostile, "\ufffd"), leader["election"])

	// The leader is removed by its lease: the queue, the question and the result are shown.
	code, stdout, stderr := etcd.line("resign", name, "--yes")
	require.Equal(t, cli.ExitOK, code, stderr)
	clitest.RequireTame(t, "resign", stdout+stderr)
	for _, p := range []*clitest.Process{first, second} {
		line := p.Line() // lost, or leader
		clitest.RequireTame(t, "campaign", line)
	}
	for format, p := range observed {
		for range 2 { // the first leader, and the next
			line := p.Line()
			require.Contains(t, line, "leader", format)
			clitest.RequireTame(t, "observe "+format, line)
		}
	}
	for _, p := range []*clitest.Process{first, second, observed["--json"], observed["--json=false"]} {
		p.Process.Signal(os.Interrupt) //nolint:errcheck // the first has ended by itself
		p.Over()
		clitest.RequireTame(t, "stderr", p.Errors())
	}
	require.Contains(t, observed["--json"].Errors(), "is no candidate's", "INVALID: nobody was told of the foreign key")
	require.Contains(t, first.Errors(), "is no candidate's", "INVALID: nobody was told of the foreign key")
}
