package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
)

// JSON encodes identities as JSON. Unknown fields are skipped, so that later versions may add some.
type JSON struct {
	// Zone is written beside the identity; Extra reads it.
	Zone string
}

// text is the value in etcd. The TTL is in whole seconds, as etcd grants it.
type text struct {
	Node     string `json:"node"`
	Instance string `json:"instance,omitempty"`
	Address  string `json:"address,omitempty"`
	TTL      int64  `json:"ttl"`
	Zone     string `json:"zone,omitempty"`
}

// Encode implements identity.Codec.
func (c JSON) Encode(id identity.Identity) ([]byte, error) {
	if id.NodeID == "" || id.TTL < 0 {
		return nil, fmt.Errorf("%w: node ID %q, TTL %v", eldest.ErrInvalid, id.NodeID, id.TTL)
	}
	seconds := (id.TTL + time.Second - 1) / time.Second // rounded up: otherwise a node would wait for too short a time
	return json.Marshal(text{Node: id.NodeID, Instance: id.Instance, Address: id.Address, TTL: int64(seconds), Zone: c.Zone})
}

// Decode implements identity.Codec. A value that Encode cannot have written is foreign.
func (JSON) Decode(value []byte) (identity.Identity, error) {
	t, err := read(value)
	if err != nil {
		return identity.Identity{}, fmt.Errorf("%w: %w", eldest.ErrForeignValue, err)
	}
	return identity.Identity{NodeID: t.Node, Instance: t.Instance, Address: t.Address, TTL: time.Duration(t.TTL) * time.Second}, nil
}

// Extra returns the zone in a value of JSON, or "" if it has none.
func Extra(value []byte) (zone string) {
	t, _ := read(value)
	return t.Zone
}

func read(value []byte) (t text, err error) {
	switch err := json.Unmarshal(value, &t); {
	case err != nil:
		return text{}, err
	case t.Node == "":
		return text{}, errors.New("it has no node ID")
	case t.TTL < 0 || t.TTL > int64(24*time.Hour/time.Second):
		return text{}, fmt.Errorf("a TTL of %d seconds", t.TTL)
	}
	return t, nil
}

// Moving is the codec of nodes that change from one codec to another.
type Moving struct{ Write, Read identity.Codec }

// Encode implements identity.Codec.
func (m Moving) Encode(id identity.Identity) ([]byte, error) { return m.Write.Encode(id) }

// Decode implements identity.Codec: it decodes the values of both codecs. Write is tried first. A
// codec that cannot distinguish its own values from others must come second; JSON and
// identity.Protobuf never accept each other's values.
func (m Moving) Decode(value []byte) (identity.Identity, error) {
	id, err := m.Write.Decode(value)
	if err == nil {
		return id, nil
	}
	id, second := m.Read.Decode(value)
	if second == nil {
		return id, nil
	}
	return identity.Identity{}, fmt.Errorf("%w; %w", err, second)
}
