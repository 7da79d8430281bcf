package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
)

func encoded(t *testing.T, id identity.Identity) string {
	t.Helper()
	value, err := identity.Protobuf{}.Encode(id)
	require.NoError(t, err)
	return string(value)
}

func TestShownValue(t *testing.T) {
	whole := encoded(t, identity.Identity{NodeID: "n1", Address: "127.0.0.1:27101", Instance: "d4e7", TTL: 3 * time.Second})
	for value, want := range map[string]string{
		whole:                     "node n1 at 127.0.0.1:27101, instance d4e7",
		"\n\x02n1\x10\x03":        "node n1",
		"\n\x02n1\x10\x03\"\x01i": "node n1, instance i",
		"\n\x02n1\x10\x03(\x01":   "node n1, priority -1",
		// Safe for terminals, part by part.
		encoded(t, identity.Identity{NodeID: "\x1b[2J", Address: " \u202e", TTL: 1}): `node "\x1b[2J" at " \u202e"`,

		// Not what elector writes: shown as it is.
		"":                              "",
		"plain":                         "plain",
		"node n1 at h:1":                "node n1 at h:1",
		"\n\x02n1":                      `"\n\x02n1"`,              // no TTL
		"\n\x02n1\x10\x00":              `"\n\x02n1\x10\x00"`,      // an empty field is left out
		"\x10\x03\n\x02n1":              `"\x10\x03\n\x02n1"`,      // another order
		"\n\x02n1\x10\x83\x00":          `"\n\x02n1\x10\x83\x00"`,  // a number written longer than it need be
		"\n\x02n1\x10\x030\x01":         `"\n\x02n1\x10\x030\x01"`, // a field more
		whole[:len(whole)-1]:            `"\n\x02n1\x10\x03\x1a\x0f127.0.0.1:27101\"\x04d4e"`,
		"\n\x02\xff\xfe\x10\x03":        `"\n\x02\xff\xfe\x10\x03"`,
		"\n " + strings.Repeat("x", 32): `"\n ` + strings.Repeat("x", 32) + `"`, // a text whose length says that it is a name
	} {
		require.Equal(t, want, shownValue([]byte(value)), "%q", value)
		json := valueForJSON([]byte(value))
		require.Equal(t, value, json.Value)
		require.Equal(t, strings.HasPrefix(want, "node ") && want != value, json.Node != "", "%q", value)
	}
}

// FuzzNodeOf: what is shown of a node is all that the value says, and no text is a node.
func FuzzNodeOf(f *testing.F) {
	f.Add([]byte("\n\x02n1\x10\x03"))
	f.Add([]byte("\n\x02n1\x10\x03\x1a\x03h:1\"\x02ab"))
	f.Add([]byte("\n\ttext line"))
	f.Fuzz(func(t *testing.T, value []byte) {
		node, ok := nodeOf(value)
		if !ok {
			require.Equal(t, cli.Printable(string(value)), shownValue(value))
			return
		}
		again, err := identity.Protobuf{}.Encode(node)
		require.NoError(t, err)
		require.Equal(t, value, again)
		require.Contains(t, string(value), "\x10", "without a control character it is a text")
	})
}

func TestNodesOfAServiceAreShown(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	o, watched := etcd.start("observe", "shop"), etcd.start("observe", "shop", "--json")
	require.Contains(t, o.Line(), "nobody")
	watched.Event("nobody")
	a, address := etcd.node("a")
	led := becomes(a, "leading")

	code, stdout, stderr := etcd.line("leader", "shop", "--json")
	require.Equal(t, cli.ExitOK, code, stderr)
	leader := parse[object](t, stdout)
	require.Equal(t, "a", leader["node"])
	require.Equal(t, address, leader["address"])
	instance := leader["instance"].(string)
	require.Len(t, instance, 16)
	value := encoded(t, identity.Identity{NodeID: "a", Address: address, Instance: instance, TTL: nodeTTL})
	require.Equal(t, value, leader["value"], "the value stays what it was")
	event := watched.Event("leader")
	for _, field := range []string{"key", "token", "value", "node", "address", "instance"} {
		require.Equal(t, leader[field], event[field], field)
	}
	code, stdout, _ = etcd.line("list", "shop", "--json")
	require.Equal(t, cli.ExitOK, code)
	rows := parse[[]object](t, stdout)
	require.Len(t, rows, 1)
	require.Equal(t, "a", rows[0]["node"])
	require.Equal(t, instance, rows[0]["instance"])

	shown := "node a at " + address + ", instance " + instance + "\n"
	require.Contains(t, o.Line(), "  value "+shown)
	for _, command := range []string{"leader", "list"} {
		code, stdout, _ = etcd.line(command, "shop")
		require.Equal(t, cli.ExitOK, code)
		require.Contains(t, stdout, "   "+shown)
		require.NotContains(t, stdout, `\n`)
	}
	code, _, stderr = etcd.line("resign", "shop", led["key"].(string), "--yes")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stderr, "  value "+shown)
	a.Signal(os.Interrupt)
	a.Ends(cli.ExitOK)
}

func TestHelpSaysHowNodesAreShown(t *testing.T) {
	for _, command := range []string{"leader", "list", "observe", "resign"} {
		code, stdout, _ := runLine(t, command, "--help")
		require.Equal(t, cli.ExitOK, code)
		require.Contains(t, stdout, "node NODE at ADDRESS, instance INSTANCE", command)
		for line := range strings.Lines(stdout) {
			require.False(t, strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "), "%s: %q", command, line)
		}
	}
}

// A node with a priority gives way to a higher one; one without never does, and what is no
// node has none.
func TestNodeGivesWay(t *testing.T) {
	of := func(priority int32) eldest.Candidate {
		return eldest.Candidate{Value: []byte(encoded(t, identity.Identity{NodeID: "n", TTL: time.Second, Priority: priority}))}
	}
	others := []eldest.Candidate{of(3), {Value: []byte("anna")}, of(0)}
	for own, gives := range map[int32]bool{-1: true, 0: false, 2: true, 3: false, 4: false} {
		require.Equal(t, gives, nodeGivesWay(of(own), others), own)
	}
	require.False(t, nodeGivesWay(eldest.Candidate{Value: []byte("bert")}, others))
}
