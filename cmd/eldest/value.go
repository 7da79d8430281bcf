package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/identity"
)

// candidateJSON is a candidate in the output for programs. Its key is the one that
// "eldest resign" takes, without the namespace.
type candidateJSON struct {
	Key         string       `json:"key"`
	Lease       string       `json:"lease"`
	Token       eldest.Token `json:"token"`
	ModRevision int64        `json:"mod_revision"`
	valueJSON
}

// valueJSON is a value: any bytes, while JSON knows text only.
type valueJSON struct {
	// Value is the text; where the value is not UTF-8, what of it can be shown.
	Value string `json:"value"`
	// Base64 is the value, exactly, where Value is not.
	Base64 string `json:"value_base64,omitempty"`
	// Node, Address, Instance and Priority are what a node of a service tells of itself in the
	// value; empty or 0 where it does not say, and for all other values.
	Node     string `json:"node,omitempty"`
	Address  string `json:"address,omitempty"`
	Instance string `json:"instance,omitempty"`
	Priority int32  `json:"priority,omitempty"`
}

func candidateForJSON(c eldest.Candidate) candidateJSON {
	return candidateJSON{
		Key: c.Key, Lease: hexLease(c.Lease), Token: c.Token, ModRevision: c.ModRevision,
		valueJSON: valueForJSON(c.Value),
	}
}

func valueForJSON(value []byte) valueJSON {
	v := valueJSON{Value: string(value)}
	if !utf8.Valid(value) {
		v.Base64 = base64.StdEncoding.EncodeToString(value)
	}
	if node, ok := nodeOf(value); ok {
		v.Node, v.Address, v.Instance, v.Priority = node.NodeID, node.Address, node.Instance, node.Priority
	}
	return v
}

// hexLease renders a lease ID as in keys.
func hexLease(id int64) string { return strconv.FormatInt(id, 16) }

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

// valueHelp is what --help says of values.
const valueHelp = `
The value of a node of a service (elector, curator) is shown as "node NODE at ADDRESS,
instance INSTANCE", with its priority if it has one. Where JSON has a value, it then has
node, and, where the node tells them, address, instance and priority beside it.
`
