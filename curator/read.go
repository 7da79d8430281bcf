package curator

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
)

// readKey is in the metadata of a call that a node may answer from its own copy of the data, and
// then in the header of the answer. The formats are in the package's documentation.
const readKey = "eldest-read"

// reads are the methods that this node answers from its own copy.
type reads struct {
	methods map[string]*method
	// age is Config.ReadAge.
	age func(ctx context.Context) (time.Duration, error)
}

// newReads calls Config.Reads. local are the services that every node answers itself in any case.
func newReads(cfg Config, local map[string]bool, late func(error)) (reads, error) {
	if cfg.Reads == nil {
		return reads{}, nil
	}
	registered := newServices(local, late)
	cfg.Reads(registered)
	methods, err := registered.close()
	return reads{methods: methods, age: cfg.ReadAge}, err
}

// allowed parses what the caller allows: whether the call may be answered from a copy, and how old
// that may be. The error is the answer to malformed metadata.
func allowed(ctx context.Context) (ok bool, maxAge time.Duration, err error) {
	values := metadata.ValueFromIncomingContext(ctx, readKey)
	if len(values) == 0 {
		return false, 0, nil
	}
	kind, limit, limited := strings.Cut(values[0], ";")
	age, named := strings.CutPrefix(strings.TrimSpace(limit), "max-age=")
	maxAge = AnyAge
	if limited {
		maxAge, err = time.ParseDuration(age)
	}
	switch {
	case len(values) > 1:
		return false, 0, status.Errorf(codes.InvalidArgument, "eldest: metadata %s is present %d times", readKey, len(values))
	case strings.TrimSpace(kind) != "local", named != limited, err != nil, maxAge < 0:
		return false, 0, status.Errorf(codes.InvalidArgument,
			`eldest: metadata %s is %.64q; it can be "local", or "local; max-age=2s"`, readKey, values[0])
	}
	return true, maxAge, nil
}

// read answers the call from this node's copy. done is false if the leader must answer: the caller
// has not allowed a local read, this node leads, another node has forwarded the call, the method is
// not one of Config.Reads, or the copy is too old or of unknown age.
func (c *Curator) read(caller grpc.ServerStream, name string) (done bool, err error) {
	ctx := caller.Context()
	ok, maxAge, err := allowed(ctx)
	if err != nil {
		return true, err
	}
	m := c.reads.methods[name]
	if !ok || m == nil || arrived(ctx).hop.token > 0 || c.router.Now().Decide(0) == routing.Serve {
		return false, nil
	}
	age, err := c.reads.age(ctx)
	if err != nil || age < 0 || age > maxAge {
		return false, nil //nolint:nilerr // of an unknown age: the leader answers
	}
	who := fmt.Sprintf("local; age=%s; node=%s", inASCII(age), strconv.QuoteToASCII(c.cfg.Elector.NodeID))
	if err := caller.SetHeader(metadata.Pairs(readKey, who)); err != nil {
		return true, err
	}
	// No tenure ends this call, so the handler runs on gRPC's goroutine.
	answer := newCall(ctx, caller, m)
	reply, err := c.handle(answer, m)
	if err != nil || m.stream != nil {
		return true, withoutLost(err, anyLost)
	}
	return true, answer.decoding.SendMsg(reply)
}

// setLeaderHeader sets the header of a call that might have been answered from a copy: the leader
// answers it, in this tenure.
func setLeaderHeader(stream grpc.ServerStream, token eldest.Token) {
	if ok, _, _ := allowed(stream.Context()); ok {
		_ = stream.SetHeader(metadata.Pairs(readKey, fmt.Sprintf("leader; token=%d", token))) // fails if the call is over
	}
}

// AnyAge is the maxAge of a caller that accepts a copy of any age.
const AnyAge = time.Duration(math.MaxInt64)

// AllowLocalRead returns a context for a call that the node that receives it may answer from its
// own copy of the data (Config.Reads), if the copy is not older than maxAge; otherwise the leader
// answers. A maxAge below 0 is 0. It replaces the value of an earlier AllowLocalRead.
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

// ReadInfo is which node answered a call that a node might have answered from its own copy.
type ReadInfo struct {
	// Local is set if a node answered from its copy, and not the leader.
	Local bool
	// Node and Age are set for a local read: the ID of the node, and how old its copy was at most
	// when the call arrived there. Later writes may be missing from the answer.
	Node string
	Age  time.Duration
	// Token is set if the leader answered: the token of its tenure.
	Token eldest.Token
}

// ReadFrom parses the header of an answer (grpc.Header, or a stream's Header). ok is false if the
// header does not name, exactly once, the node that answered: the call was without AllowLocalRead, or was
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

// inASCII prints a duration in ASCII, as metadata requires; time.ParseDuration parses "us" as "µs".
func inASCII(d time.Duration) string { return strings.Replace(d.String(), "µ", "u", 1) }
