package identity

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity/identitypb"
)

// MaxText is how many bytes each text of an identity may have. An address or a name is short; a
// longer text is a mistake, and would be kept in etcd, in each follower, and in the headers of
// forwarded requests.
const MaxText = 1024

// maxSeconds is the longest TTL that a time.Duration can hold, in seconds: 292 years.
const maxSeconds = uint64(math.MaxInt64 / int64(time.Second))

// Protobuf is the codec of identitypb.LeaderElectionValue, whose first two fields are
// older than this package: node ID and TTL, without an address, an instance or a
// priority. The zero value is ready for use.
//
// Encode writes the fields in the order of their numbers and leaves empty ones out, so equal
// identities have equal bytes. A TTL is written in whole seconds, as etcd grants it; a fraction is
// rounded up, so that a program that waits for the TTL to pass never waits for too short a time.
//
// Decode ignores unknown fields. Programs that pass a value on do not lose them, because they pass
// it on as bytes. A TTL that a time.Duration cannot hold becomes the longest whole second that it
// can.
type Protobuf struct{}

// Encode fails, with an error that wraps eldest.ErrInvalid, if the node ID is empty, if
// a text is longer than MaxText or is not UTF-8, or if the TTL is negative.
func (Protobuf) Encode(id Identity) ([]byte, error) {
	if err := id.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", eldest.ErrInvalid, err)
	}
	seconds := uint64(id.TTL / time.Second)
	if id.TTL%time.Second > 0 {
		seconds++
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(&identitypb.LeaderElectionValue{
		NodeId: id.NodeID, Ttl: seconds, Address: id.Address, InstanceId: id.Instance, Priority: id.Priority,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", eldest.ErrInvalid, err)
	}
	return value, nil
}

// Decode fails, with an error that wraps eldest.ErrForeignValue, if value is not the message, has
// no node ID, or has a text that Encode refuses. It keeps no reference to value.
func (Protobuf) Decode(value []byte) (Identity, error) {
	var m identitypb.LeaderElectionValue
	if err := proto.Unmarshal(value, &m); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", eldest.ErrForeignValue, err)
	}
	id := Identity{
		NodeID: m.GetNodeId(), Instance: m.GetInstanceId(), Address: m.GetAddress(),
		TTL: time.Duration(min(m.GetTtl(), maxSeconds)) * time.Second, Priority: m.GetPriority(),
	}
	if err := id.check(); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", eldest.ErrForeignValue, err)
	}
	return id, nil
}

// check returns why id is not a node's identity; nil: it is.
func (id Identity) check() error {
	for _, text := range []struct{ name, is string }{{"node ID", id.NodeID}, {"instance", id.Instance}, {"address", id.Address}} {
		switch {
		case len(text.is) > MaxText:
			return fmt.Errorf("the %s has %d bytes, more than %d", text.name, len(text.is), MaxText)
		case !utf8.ValidString(text.is):
			return fmt.Errorf("the %s %.64q is not UTF-8", text.name, text.is)
		}
	}
	switch {
	case id.NodeID == "":
		return errors.New("the node ID is empty")
	case id.TTL < 0:
		return fmt.Errorf("the TTL %v is negative", id.TTL)
	}
	return nil
}
