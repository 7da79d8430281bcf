package main

import (
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"

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
		// Each part is made safe for terminals.
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
		require.Equal(t, want, operate.ShownValue([]byte(value)), "%q", value)
		json := candidateForJSON(eldest.Candidate{Value: []byte(value)})
		require.Equal(t, value, json.Value)
		require.Equal(t, strings.HasPrefix(want, "node ") && want != value, json.Node != "", "%q", value)
	}
}

// FuzzNodeOf: all that a value contains of a node is shown, and no text is taken for a node.
func FuzzNodeOf(f *testing.F) {
	f.Add([]byte("\n\x02n1\x10\x03"))
	f.Add([]byte("\n\x02n1\x10\x03\x1a\x03h:1\"\x02ab"))
	f.Add([]byte("\n\ttext line"))
	f.Fuzz(func(t *testing.T, value []byte) {
		node, ok := operate.NodeOf(value)
		if !ok {
			require.Equal(t, cli.Printable(string(value)), operate.ShownValue(value))
			return
		}
		again, err := identity.Protobuf{}.Encode(node)
		require.NoError(t, err)
		require.Equal(t, value, again)
		require.Contains(t, string(value), "\x10", "without a control character it is a text")
	})
}

// A node with a priority yields to a node with a higher one. A node without one never yields, and a
// candidate that is no node has none.
func TestNodeYields(t *testing.T) {
	of := func(priority int32) eldest.Candidate {
		return eldest.Candidate{Value: []byte(encoded(t, identity.Identity{NodeID: "n", TTL: time.Second, Priority: priority}))}
	}
	others := []eldest.Candidate{of(3), {Value: []byte("anna")}, of(0)}
	for own, gives := range map[int32]bool{-1: true, 0: false, 2: true, 3: false, 4: false} {
		require.Equal(t, gives, operate.ShouldYield(of(own), others), own)
	}
	require.False(t, operate.ShouldYield(eldest.Candidate{Value: []byte("bert")}, others))
}
