package curator

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest"
)

// AnyAge is the maxAge of a caller that reads a copy however old it is.
const AnyAge = time.Duration(math.MaxInt64)

// AllowLocalRead returns a context for a call that the node that gets it may answer from its
// own copy of the data (Config.Reads), if that is not older than maxAge; else the leader
// answers. A maxAge below 0 is 0. It replaces what an earlier AllowLocalRead has said.
func AllowLocalRead(ctx context.Context, maxAge time.Duration) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = make(metadata.MD, 1)
	}
	value := "local"
	if maxAge < AnyAge {
		value += "; max-age=" + inASCII(max(maxAge, 0))
	}
	md.Set(readKey, value)
	return metadata.NewOutgoingContext(ctx, md)
}

// ReadInfo is who answered a call that a node might have answered from its own copy.
type ReadInfo struct {
	// Local says that it was the node, and not the leader.
	Local bool
	// Node and Age are set for a local read: which node, and how old its copy was at most
	// when the call came to it. Whatever was written later may be missing from the answer.
	Node string
	Age  time.Duration
	// Token is set for one of the leader's: the tenure's.
	Token eldest.Token
}

// ReadFrom reads the header of an answer (grpc.Header, or a stream's Header). ok is false if
// it does not say, exactly once, who answered: the call was without AllowLocalRead, or was
// refused before a service saw it, or the leader is a curator of an earlier version.
func ReadFrom(header metadata.MD) (info ReadInfo, ok bool) {
	values := header.Get(readKey)
	if len(values) != 1 {
		return ReadInfo{}, false
	}
	if token, ok := strings.CutPrefix(values[0], "leader; token="); ok {
		n, err := strconv.ParseInt(token, 10, 64)
		if err != nil || n <= 0 {
			return ReadInfo{}, false
		}
		return ReadInfo{Token: eldest.Token(n)}, true
	}
	said, local := strings.CutPrefix(values[0], "local; age=")
	first, second, _ := strings.Cut(said, "; node=")
	age, err := time.ParseDuration(first)
	if !local || err != nil || age < 0 {
		return ReadInfo{}, false
	}
	node, err := strconv.Unquote(second)
	if err != nil {
		return ReadInfo{}, false
	}
	return ReadInfo{Local: true, Node: node, Age: age}, true
}

// inASCII prints a duration as metadata can carry it: time.ParseDuration reads "us" like "µs".
func inASCII(d time.Duration) string { return strings.Replace(d.String(), "µ", "u", 1) }
