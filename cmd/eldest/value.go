package main

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"
)

// candidateJSON is a candidate in the output for programs. Its key is the one that
// "eldest evict" takes, without the namespace.
type candidateJSON struct {
	Key         string       `json:"key"`
	Lease       string       `json:"lease"`
	Token       eldest.Token `json:"token"`
	ModRevision int64        `json:"mod_revision"`
	// Value is the text; if the value is not UTF-8, the part of it that can be shown. Base64 is the exact
	// value, if Value is not.
	Value  string `json:"value"`
	Base64 string `json:"value_base64,omitempty"`
	// Node, Address, Instance and Priority are what a node of a service writes about itself in the
	// value; empty or 0 if it does not, and for all other values.
	Node     string `json:"node,omitempty"`
	Address  string `json:"address,omitempty"`
	Instance string `json:"instance,omitempty"`
	Priority int32  `json:"priority,omitempty"`
}

func candidateForJSON(c eldest.Candidate) candidateJSON {
	v := candidateJSON{Key: c.Key, Lease: hexLease(c.Lease), Token: c.Token, ModRevision: c.ModRevision, Value: string(c.Value)}
	if !utf8.Valid(c.Value) {
		v.Base64 = base64.StdEncoding.EncodeToString(c.Value)
	}
	if node, ok := operate.NodeOf(c.Value); ok {
		v.Node, v.Address, v.Instance, v.Priority = node.NodeID, node.Address, node.Instance, node.Priority
	}
	return v
}

// hexLease renders a lease ID as in keys.
func hexLease(id int64) string { return strconv.FormatInt(id, 16) }

// valueHelp is the part of --help about values.
const valueHelp = `
The value of a node of a service (elector, curator) is shown as "node NODE at ADDRESS,
instance INSTANCE", with its priority if it has one. JSON then has, beside value, the fields
node and, if the node has set them, address, instance and priority.
`
