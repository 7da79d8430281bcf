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

// The metadata of a forwarded call. It travels between two nodes; neither
// the caller nor the service sees it.
const (
	// hopKey is the token of the tenure that the call is meant for. The node that receives it
	// serves the call in that tenure or refuses it: the call is not forwarded again.
	hopKey = "eldest-hop"
	// fromKey is the id of the node that forwarded, escaped as in a URL.
	fromKey = "eldest-from"
	// agentKey and authorityKey are what the caller had sent as "user-agent" and
	// ":authority", in whose places gRPC puts those of the hop.
	agentKey     = "eldest-user-agent"
	authorityKey = "eldest-authority"
	// oddKey has in pairs, key and value, what gRPC accepts of a caller and does not send
	// itself (see odd), and the caller's certificate (see callerKey).
	oddKey = "eldest-odd-bin"
	// callerKey names, in the pairs of oddKey, the certificate of the caller, as
	// DER. It is trusted there and nowhere else: a node of an older version passes on
	// what a caller sends under the key itself, but writes the pairs
	// itself, and never with a key like this one.
	callerKey = "eldest-caller-bin"
	// servedKey is in the trailer of every answer that a curator gives to a forwarded
	// call. An answer without it was made up by a connection that broke, or by a server
	// that is no curator. Its first value is the token. The second, begun, is there if the call
	// has come to a handler; without it, the call may go to the next leader as it came. (It is this way
	// round because a handler can add to a trailer, and cannot take anything away.)
	servedKey = "eldest-served"
	begun     = "begun"
	// unaryKey is in that trailer if the method is unary: one message each way.
	unaryKey = "eldest-unary"
	// refusedKey is in that trailer if a curator has answered in the service's place: why
	// (Refusal).
	refusedKey = "eldest-refused"
)

// hopKeys are those that come with a hop and with no other call.
var hopKeys = []string{hopKey, fromKey, agentKey, authorityKey, oddKey, callerKey}

// hop is the metadata of a forwarded call. The zero hop is that of a call that
// comes from a caller.
type hop struct {
	token eldest.Token // > 0: forwarded
	from  string
	// verified: the call does come from that node.
	verified bool
	// caller returns the certificate of the caller, as a verified node has passed it on; nil: it has passed on none.
	caller func() *x509.Certificate
}

// hopOf reads the hop from the metadata of an incoming call. What cannot have been
// written by a curator is refused.
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
		return malformed(hopKey, "there %d times: a call is forwarded once", len(values))
	case err != nil, token <= 0, strconv.FormatInt(token, 10) != values[0]: // parsing is more liberal than printing
		return malformed(hopKey, "%.64q, not the token of one tenure", values[0])
	case odd%2 != 0:
		return malformed(oddKey, "there %d times: it comes in pairs", odd)
	}
	h := hop{token: eldest.Token(token)}
	if values := metadata.ValueFromIncomingContext(ctx, fromKey); len(values) > 0 {
		if h.from, err = url.PathUnescape(values[0]); err != nil {
			h.from = values[0]
		}
	}
	return h, nil
}

// served is the trailer by which an answer of a curator is known from one that was made up.
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
	// gRPC writes the first two anew for the hop.
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

// passedCaller returns what the node that forwarded a call has passed on of the caller: a function
// that parses the certificate once, or nil. ctx has the metadata of the hop.
func passedCaller(ctx context.Context) func() *x509.Certificate {
	for pairs := metadata.ValueFromIncomingContext(ctx, oddKey); len(pairs) >= 2; pairs = pairs[2:] {
		if pairs[0] != callerKey {
			continue
		}
		return sync.OnceValue(func() *x509.Certificate {
			cert, err := x509.ParseCertificate([]byte(pairs[1]))
			if err != nil {
				return nil // not what that node's crypto/tls has verified
			}
			return cert
		})
	}
	return nil
}

// fromCaller returns ctx with the metadata that the caller sent: as if there had been
// no hop. What only a hop has is removed from a call without one, too.
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

// odd removes from md what gRPC's server accepts and its client refuses to send, and
// returns it: keys with other characters than 0-9, a-z, '_', '-' and '.', and texts with
// others than the printable ones of ASCII. gRPC's protocol has servers accept such texts.
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

// toCaller removes from a header or a trailer of the leader what is not the
// service's: what gRPC writes anew, or else the caller would have it twice.
func toCaller(md metadata.MD) metadata.MD {
	for _, key := range []string{"content-type", "grpc-status-details-bin", servedKey, unaryKey, refusedKey} {
		delete(md, key)
	}
	return md
}
