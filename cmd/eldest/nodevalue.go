package main

import (
	"bytes"
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/eldest-io/eldest/identity"
)

// nodeOf returns what a value says of a node, if it is one that package elector wrote
// (and with it curator) in its usual form. The form has no mark by which it knows
// itself, so only a value counts that is made again, byte by byte, from what was read
// in it: nothing is left out of what is shown. And it must have a TTL, which elector
// always writes: that takes a control character, so no text is ever misread, also not
// one that begins with an empty line and happens to have the right length.
func nodeOf(value []byte) (identity.Identity, bool) {
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

// shownValue renders a candidate's value for people: a node of a service by what it
// says of itself, everything else as it is. What the value says may be anybody's claim,
// so its parts are made printable like all text from outside.
func shownValue(value []byte) string {
	node, ok := nodeOf(value)
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

// valueHelp is what --help says of values for people, nodeHelp of those fields of JSON.
const (
	valueHelp = `Where the value is what a node of a service (elector, curator) tells of itself, it
is shown as "node NODE at ADDRESS, instance INSTANCE", with its priority if it has one.`
	nodeHelp = `For such a value JSON has node, and, where the node tells them, address,
instance and priority beside the value.`
)
