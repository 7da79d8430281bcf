package operate

import (
	"bytes"
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/identity"
)

// NodeOf decodes a value that package elector (and with it curator) wrote in its default form. That
// form has no marker, so a value counts only if encoding the decoded fields gives the same bytes:
// then nothing is left out of what is shown. It must also have a TTL, which elector always writes.
// The encoding of the TTL has a control character, so no text is taken for a node, not even one that
// begins with an empty line and happens to have the right length.
func NodeOf(value []byte) (identity.Identity, bool) {
	node, err := identity.Protobuf{}.Decode(value)
	if err != nil || node.TTL == 0 {
		return identity.Identity{}, false
	}
	again, err := identity.Protobuf{}.Encode(node)
	if err != nil || !bytes.Equal(again, value) {
		return identity.Identity{}, false
	}
	return node, true
}

// ShownValue renders a candidate's value for people: a node of a service by its fields, every other
// value as it is. Values are untrusted, so the parts are made printable like all text from outside.
func ShownValue(value []byte) string {
	node, ok := NodeOf(value)
	if !ok {
		return cli.Printable(string(value))
	}
	shown := "node " + cli.Printable(node.NodeID)
	if node.Address != "" {
		shown += " at " + cli.Printable(node.Address)
	}
	if node.Instance != "" {
		shown += ", instance " + cli.Printable(node.Instance)
	}
	if node.Priority != 0 {
		shown += fmt.Sprintf(", priority %d", node.Priority)
	}
	return shown
}
