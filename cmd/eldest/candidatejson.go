package main

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"github.com/eldest-io/eldest"
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
