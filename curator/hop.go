package curator

import (
	"context"
	"crypto/x509"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
)

// The metadata of a forwarded call. Only the two nodes of the hop see it, not the caller or the
// service.
const (
	// hopKey is the token of the tenure that the call is meant for. The node that receives it
	// serves the call in that tenure or refuses it: the call is not forwarded again.
	hopKey = "eldest-hop"
	// fromKey is the ID of the node that forwarded the call, escaped as in a URL.
	fromKey = "eldest-from"
	// agentKey and authorityKey are the caller's "user-agent" and ":authority", which gRPC replaces
	// by those of the hop.
	agentKey     = "eldest-user-agent"
	authorityKey = "eldest-authority"
	// oddKey has pairs of key and value: metadata that gRPC accepts from a caller but does not send
	// itself (see odd), and the caller's certificate (see callerKey).
	oddKey = "eldest-odd-bin"
	// callerKey is the key of the caller's certificate, as DER, in the pairs of oddKey. It is
	// trusted only there: a node of an older version passes on metadata that a caller sends with
	// this key, but it writes the pairs itself, and never with a key like this one.
	callerKey = "eldest-caller-bin"
	// servedKey is in the trailer of every answer of a curator to a forwarded call. An answer
	// without it comes from a broken connection, or from a server that is not a curator. Its first
	// value is the token. The second value, begun, is present if the call has reached a handler;
	// without it, the call may be sent unchanged to the next leader. (Begun calls are marked, and
	// not the others, because a handler can add to a trailer, but cannot remove anything.)
	servedKey = "eldest-served"
	begun     = "begun"
	// unaryKey is in that trailer if the method is unary: one message each way.
	unaryKey = "eldest-unary"
	// refusedKey is in that trailer if a curator has answered in the service's place: why
	// (Refusal).
	refusedKey = "eldest-refused"
)

// hopKeys are the keys that only forwarded calls have.
var hopKeys = []string{hopKey, fromKey, agentKey, authorityKey, oddKey, callerKey}

// hop is the metadata of a forwarded call. The zero hop means that the call comes from a caller.
type hop struct {
	token eldest.Token // > 0: forwarded
	from  string
	// verified is set if it was verified that the call comes from that node.
	verified bool
	// caller returns the caller's certificate, as a verified node has passed it on. nil: it has
	// passed on none.
	caller func() *x509.Certificate
}

// hopOf reads the hop from the metadata of an incoming call. It refuses metadata that no curator
// can have written.
func hopOf(ctx context.Context) (hop, error) {
	malformed := func(key, format string, args ...any) (hop, error) {
		return hop{}, status.Errorf(codes.InvalidArgument, "eldest: metadata "+key+" is "+format, args...)
	}
	values := metadata.ValueFromIncomingContext(ctx, hopKey)
	if len(values) == 0 {
		return hop{}, nil
	}
	token, err := strconv.ParseInt(values[0], 10, 64)
	odd := len(metadata.ValueFromIncomingContext(ctx, oddKey))
	switch {
	case len(values) > 1:
		return malformed(hopKey, "present %d times: a call is forwarded once", len(values))
	case err != nil, token <= 0, strconv.FormatInt(token, 10) != values[0]: // ParseInt accepts more than FormatInt writes
		return malformed(hopKey, "%.64q, not the token of one tenure", values[0])
	case odd%2 != 0:
		return malformed(oddKey, "present %d times, not an even number", odd)
	}
	h := hop{token: eldest.Token(token)}
	if values := metadata.ValueFromIncomingContext(ctx, fromKey); len(values) > 0 {
		if h.from, err = url.PathUnescape(values[0]); err != nil {
			h.from = values[0]
		}
	}
	return h, nil
}

// served is the trailer that distinguishes an answer of a curator from one that was made up.
func (h hop) served() metadata.MD {
	return metadata.Pairs(servedKey, strconv.FormatInt(int64(h.token), 10))
}

// toLeader returns the metadata of the call to the leader: all that the caller sent, as
// it sent it, and the hop.
func toLeader(ctx context.Context, h hop) metadata.MD {
	md, _ := metadata.FromIncomingContext(ctx) // a copy
	if md == nil {
		md = make(metadata.MD, 4)
	}
	move(md, "user-agent", agentKey)
	move(md, ":authority", authorityKey)
	// gRPC writes the first two again for the hop.
	for _, key := range []string{"content-type", "grpc-accept-encoding", servedKey, oddKey, callerKey} {
		delete(md, key)
	}
	var pairs []string
	if cert := certificate(ctx); cert != nil {
		pairs = []string{callerKey, string(cert.Raw)}
	}
	for key, values := range odd(md) {
		for _, value := range values {
			pairs = append(pairs, key, value)
		}
	}
	if len(pairs) > 0 {
		md[oddKey] = pairs
	}
	md[hopKey] = []string{strconv.FormatInt(int64(h.token), 10)}
	md[fromKey] = []string{url.PathEscape(h.from)}
	return md
}

// passedCaller returns a function that parses, once, the caller's certificate that the forwarding
// node has passed on, or nil if there is none. ctx has the metadata of the hop.
func passedCaller(ctx context.Context) func() *x509.Certificate {
	for pairs := metadata.ValueFromIncomingContext(ctx, oddKey); len(pairs) >= 2; pairs = pairs[2:] {
		if pairs[0] != callerKey {
			continue
		}
		return sync.OnceValue(func() *x509.Certificate {
			cert, err := x509.ParseCertificate([]byte(pairs[1]))
			if err != nil {
				return nil // crypto/tls of that node cannot have verified it
			}
			return cert
		})
	}
	return nil
}

// fromCaller returns ctx with the metadata that the caller sent, as if there had been no hop. The
// keys of a hop are removed from a call without one, too.
func fromCaller(ctx context.Context, h hop) context.Context {
	md, _ := metadata.FromIncomingContext(ctx) // a copy
	if h.token > 0 {
		for pairs := md[oddKey]; len(pairs) >= 2; pairs = pairs[2:] {
			md[pairs[0]] = append(md[pairs[0]], pairs[1])
		}
		move(md, agentKey, "user-agent")
		move(md, authorityKey, ":authority")
	}
	for _, key := range hopKeys {
		delete(md, key)
	}
	return metadata.NewIncomingContext(ctx, md)
}

// odd removes from md what gRPC's server accepts and its client refuses to send, and returns it:
// keys with characters other than 0-9, a-z, '_', '-' and '.', and values with characters other than
// printable ASCII. gRPC's protocol requires servers to accept such values.
func odd(md metadata.MD) metadata.MD {
	var found metadata.MD
	for key, values := range md {
		if plainKey(key) && (strings.HasSuffix(key, "-bin") || !slices.ContainsFunc(values, unprintable)) {
			continue
		}
		if found == nil {
			found = make(metadata.MD)
		}
		found[key] = values
		delete(md, key)
	}
	return found
}

func plainKey(key string) bool {
	return !strings.ContainsFunc(key, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '_' && c != '-' && c != '.'
	})
}

func unprintable(value string) bool {
	return strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' })
}

func move(md metadata.MD, from, to string) {
	values, ok := md[from]
	delete(md, from)
	if ok {
		md[to] = values
	} else {
		delete(md, to)
	}
}

// toCaller removes from a header or a trailer of the leader what is not the service's: the keys of
// the hop, and what gRPC writes again, which the caller would otherwise have twice.
func toCaller(md metadata.MD) metadata.MD {
	for _, key := range []string{"content-type", "grpc-status-details-bin", servedKey, unaryKey, refusedKey} {
		delete(md, key)
	}
	return md
}
