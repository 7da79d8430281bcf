package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/identity"
)

// All commands that print names, keys or values from other users, on a real etcd.
func TestNamesAndValuesDoNothingToATerminal(t *testing.T) {
	t.Parallel()
	etcd, name, hostile := borrowed(t), clitest.Hostile, clitest.Hostile
	text := strings.ToValidUTF8(hostile, "\ufffd")
	node, err := identity.Protobuf{}.Encode(identity.Identity{
		NodeID: strings.ToValidUTF8(hostile, "?"), Address: "\x1b[31mh:1", Instance: "\u202ei", TTL: time.Second,
	})
	require.NoError(t, err)
	observed := map[string]*clitest.Process{}
	for _, format := range []string{"--json=false", "--json"} {
		observed[format] = etcd.start("observe", name, format)
		clitest.RequireTame(t, "observe "+format, observed[format].Line())
	}
	tame := func(p *clitest.Process, events ...string) {
		for _, event := range events {
			line := p.Line()
			require.Contains(t, line, event)
			clitest.RequireTame(t, strings.Join(p.Args[1:2], " "), line)
		}
	}
	// A foreign key, which observers and candidates report.
	_, err = etcd.client.Put(t.Context(), name+"/"+hostile, hostile)
	require.NoError(t, err)
	first := etcd.start("campaign", name, hostile, "--ttl", "60s")
	tame(first, "registered", "leader")
	second := etcd.start("campaign", name, "\u202e\x9b", "--json", "--ttl", "60s", "--http", "0")
	tame(second, "registered", "waiting")
	at := served(second)
	require.Eventually(t, func() bool { // its observer has received the leader
		_, body := get(t, at+"/leader")
		return parse[object](t, body)["leader"] == text
	}, patience, 10*time.Millisecond, "/leader does not name the leader")
	for _, path := range []string{"/", "/healthz", "/leader"} {
		_, body := get(t, at+path)
		clitest.RequireTame(t, path, body)
	}
	// A candidate whose value is that of a node of a service, with a hostile name.
	lease, err := etcd.client.Grant(t.Context(), 60)
	require.NoError(t, err)
	key := name + "/" + strconv.FormatInt(int64(lease.ID), 16)
	_, err = etcd.client.Put(t.Context(), key, string(node))
	require.NoError(t, err)

	for _, line := range [][]string{
		{"leader", name}, {"list", name}, {"leader", name + "?"}, {"evict", name + "?", "--yes"},
		{"evict", name, hostile, "--yes"}, {"evict", name, key, "--yes"},
		{"leader", name + "/"}, {"leader", name, "--endpoints", hostile}, {"leader", name, "--endpoints", "127.0.0.1:1", "--user", hostile + ":x", "--dial-timeout", "100ms"},
		{"leader", name, "--cacert", hostile}, {"leader", name, "--" + hostile}, {"leader", name, "--namespace", hostile},
		{"leader", name, "--dial-timeout", hostile}, {hostile}, {"leader", name, hostile}, {"campaign", name, "--ttl", hostile},
		{"bench", hostile}, {"bench", "handover", "--contender", hostile}, {"bench", "report", "/no/such/" + hostile},
		{"demo", hostile}, {"lab", hostile, hostile}, {"lab", hostile + "/"}, {"lab", "--listen", hostile}, {"chaos", hostile, hostile}, {"service", hostile}, {"etcd", hostile}, {"etcd", "--members", hostile},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			_, stdout, stderr := etcd.line(append(line[:len(line):len(line)], more...)...)
			clitest.RequireTame(t, line[0]+" stdout", stdout)
			clitest.RequireTame(t, line[0]+" stderr", stderr)
			require.NotEmpty(t, stdout+stderr, "%q", line)
		}
	}
	// What is escaped means the same to a program.
	_, stdout, _ := etcd.line("leader", name, "--json")
	leader := parse[object](t, stdout)
	require.Equal(t, []any{text, text}, []any{leader["value"], leader["election"]})

	// The leader is removed: the queue, the question and the result are shown.
	code, stdout, stderr := etcd.line("evict", name, "--yes")
	require.Equal(t, cli.ExitOK, code, stderr)
	clitest.RequireTame(t, "evict", stdout+stderr)
	tame(first, "lost")
	tame(second, "leader")
	for _, p := range observed {
		tame(p, "leader", "leader")
	}
	for _, p := range []*clitest.Process{first, second, observed["--json"], observed["--json=false"]} {
		p.Process.Signal(os.Interrupt) //nolint:errcheck // the first has ended by itself
		p.Over()
		clitest.RequireTame(t, "stderr", p.Errors())
	}
	require.Contains(t, observed["--json"].Errors(), "does not belong to a candidate", "INVALID: nobody was told of the foreign key")
	require.Contains(t, first.Errors(), "does not belong to a candidate", "INVALID: nobody was told of the foreign key")
}
