package curator

import (
	"context"
	"fmt"
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

// readKey is in the metadata of a call that a node may answer from its own copy of the data,
// and then in the header of the answer. Both are written here, and for callers in other
// languages in the package's documentation.
//
//	eldest-read: local                               any age
//	eldest-read: local; max-age=2s                   at most this age
//	eldest-read: local; age=1.204s; node="b"         answered by this node
//	eldest-read: leader; token=7                     answered by the leader, in this tenure
const readKey = "eldest-read"

// reads are the methods that this node answers from its own copy.
type reads struct {
	methods map[string]*method
	// age is Config.ReadAge.
	age func(ctx context.Context) (time.Duration, error)
}

// newReads has the methods registered. local are the services that every node answers
// itself in any case.
func newReads(cfg Config, local map[string]bool, late func(error)) (reads, error) {
	if cfg.Reads == nil {
		return reads{}, nil
	}
	registered := newServices(local, late)
	cfg.Reads(registered)
	methods, err := registered.close()
	return reads{methods: methods, age: cfg.ReadAge}, err
}

// allowed reads what the caller has asked for: whether the call may be answered from a copy,
// and how old that may be. The error is the answer to metadata that cannot be understood.
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
		return false, 0, status.Errorf(codes.InvalidArgument, "eldest: metadata %s is there %d times", readKey, len(values))
	case strings.TrimSpace(kind) != "local", named != limited, err != nil, maxAge < 0:
		return false, 0, status.Errorf(codes.InvalidArgument,
			`eldest: metadata %s is %.64q; it can be "local", or "local; max-age=2s"`, readKey, values[0])
	}
	return true, maxAge, nil
}

// read answers the call from this node's copy. done is false if it is the leader's to answer:
// the caller has not allowed anything else, this node leads, another node has forwarded the
// call, the method is none of Config.Reads, or the copy is too old or of an unknown age.
func (f *front) read(caller grpc.ServerStream, name string) (done bool, err error) {
	ctx := caller.Context()
	ok, maxAge, err := allowed(ctx)
	if err != nil {
		return true, err
	}
	m := f.reads.methods[name]
	if !ok || m == nil || arrived(ctx).hop.token > 0 || f.router.Now().Decide(0) == routing.Serve {
		return false, nil
	}
	age, err := f.reads.age(ctx)
	if err != nil || age < 0 || age > maxAge {
		return false, nil //nolint:nilerr // of an unknown age: the leader answers
	}
	who := fmt.Sprintf("local; age=%s; node=%s", inASCII(age), strconv.QuoteToASCII(f.node))
	if err := caller.SetHeader(metadata.Pairs(readKey, who)); err != nil {
		return true, err
	}
	// No tenure ends this, so the handler runs where gRPC has called us.
	c := newCall(ctx, caller, m)
	reply, err := f.dispatcher.call(c, m)
	if err != nil || m.stream != nil {
		return true, withoutLost(err, anyLost)
	}
	return true, c.decoding.SendMsg(reply)
}

// led says in the header of a call that might have been answered from a copy that the leader
// answers it, in this tenure.
func led(stream grpc.ServerStream, token eldest.Token) {
	if ok, _, _ := allowed(stream.Context()); ok {
		_ = stream.SetHeader(metadata.Pairs(readKey, fmt.Sprintf("leader; token=%d", token))) // fails if the call is over
	}
}
