package curator

import (
	"math"

	"google.golang.org/grpc"
)

// Defaults of Config's limits. They are for services that nobody has thought about yet:
// each can be raised, and then a node takes so much more memory for whoever asks.
const (
	// DefaultMaxMessage bounds a message, in bytes; gRPC's own default.
	DefaultMaxMessage = 4 << 20
	// DefaultMaxMetadata bounds the metadata of a call, in bytes. gRPC's own default, 16
	// MiB, is more than that of a message, and metadata is held as long as the call.
	DefaultMaxMetadata = 64 << 10
	// DefaultMaxStreams bounds the calls of a connection. gRPC's own default is none; a
	// goroutine or two and some kilobytes are spent on each, whoever began it.
	DefaultMaxStreams = 4096
	// DefaultMaxWaiting bounds the calls that wait for a leader, or a connection to it.
	DefaultMaxWaiting = 4096
	// DefaultMaxHeld bounds what they hold of messages meanwhile, in bytes.
	DefaultMaxHeld = 64 << 20
)

// limited returns the configuration with its limits, or what is wrong with them.
func (c Config) limited() (Config, error) {
	for _, limit := range []struct {
		name   string
		is     *int
		normal int
	}{
		{"MaxMessage", &c.MaxMessage, DefaultMaxMessage},
		{"MaxMetadata", &c.MaxMetadata, DefaultMaxMetadata},
		{"MaxStreams", &c.MaxStreams, DefaultMaxStreams},
		{"MaxWaiting", &c.MaxWaiting, DefaultMaxWaiting},
		{"MaxHeld", &c.MaxHeld, DefaultMaxHeld},
	} {
		switch {
		case *limit.is < 0, *limit.is > math.MaxInt32: // of which gRPC makes 32 bits
			return c, invalid("Config.%s %d is negative, or more than %d", limit.name, *limit.is, math.MaxInt32)
		case *limit.is == 0:
			*limit.is = limit.normal
		}
	}
	return c, nil
}

// limits are the server's options for the limits. They are held where a call comes in, at
// each node, so a call that is too large does not get as far as the leader.
func (c Config) limits() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(c.MaxMessage),
		grpc.MaxHeaderListSize(uint32(c.MaxMetadata)),
		grpc.MaxConcurrentStreams(uint32(c.MaxStreams)),
	}
}
