package badinput

import (
	"errors"
	"testing"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/keys"
)

var errInvalid = []error{eldest.ErrInvalid}

// keysSection: names and keys, which need no etcd.
func keysSection(*testing.T) section {
	s := section{title: "keys", about: "Arithmetic on names and keys: nothing can be sent, and there is no operation to name."}
	for _, bad := range badNames {
		s.rows = append(s.rows, row{tried: "`Check`: " + bad.what, try: func() error { return keys.Check(bad.name) }, want: errInvalid})
	}
	for _, key := range []struct{ what, key string }{
		{"another election's key", "invoices/2a"},
		{"a key that names no lease", "orders/notes"},
		{"a lease with a capital letter", "orders/2A"},
		{"a lease with a leading zero", "orders/02a"},
		{"a negative lease", "orders/-1"},
		{"lease 0", "orders/0"},
		{"more than 64 bits", "orders/10000000000000000"},
		{"a candidate of a nested election", "orders/eu/2a"},
		{"the bare prefix", "orders/"},
		{"control characters", "orders/\x1b[31m\n"},
	} {
		s.rows = append(s.rows, row{
			tried: "`Parse`: " + key.what, try: func() error { return second(keys.Parse("orders", key.key)) }, want: []error{eldest.ErrForeignKey},
		})
	}
	return s
}

// identitySection: the values of nodes.
func identitySection(*testing.T) section {
	s := section{title: "identity", about: "Bytes and nothing else: nothing can be sent, and there is no operation to name."}
	codec := identity.Protobuf{}
	for _, bad := range []struct {
		what string
		id   identity.Identity
	}{
		{"no node ID", identity.Identity{Address: "h:1"}},
		{"a node ID of 1,025 bytes", identity.Identity{NodeID: long(identity.MaxText)}},
		{"an address of 1,025 bytes", identity.Identity{NodeID: "n1", Address: long(identity.MaxText)}},
		{"a node ID that is not UTF-8", identity.Identity{NodeID: "n\xff"}},
		{"an address that is not UTF-8", identity.Identity{NodeID: "n1", Address: "\xff"}},
		{"an instance of 1,025 bytes", identity.Identity{NodeID: "n1", Instance: long(identity.MaxText)}},
		{"an instance that is not UTF-8", identity.Identity{NodeID: "n1", Instance: "\x80"}},
		{"a negative TTL", identity.Identity{NodeID: "n1", TTL: -1}},
	} {
		s.rows = append(s.rows, row{tried: "`Encode`: " + bad.what, try: func() error { return second(codec.Encode(bad.id)) }, want: errInvalid})
	}
	for _, bad := range []struct {
		what  string
		value string
	}{
		{"an empty value", ""},
		{"some text", "host-17"},
		{"a message that is cut off", "\x0a\x02n"},
		{"a message without a node ID", "\x10\x0a"},
		{"a node ID that is not UTF-8", "\x0a\x01\xff"},
		{"a node ID of 1,025 bytes", "\x0a\x81\x08" + long(identity.MaxText)},
	} {
		s.rows = append(s.rows, row{
			tried: "`Decode`: " + bad.what, try: func() error { return second(codec.Decode([]byte(bad.value))) }, want: []error{eldest.ErrForeignValue},
			after: func(t *testing.T) {
				if id, err := codec.Decode([]byte(bad.value)); id != (identity.Identity{}) || !errors.Is(err, eldest.ErrForeignValue) {
					t.Errorf("an identity beside an error: %+v", id)
				}
			},
		})
	}
	return s
}
