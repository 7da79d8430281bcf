package curator

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
)

// The metadata of a forwarded call. It travels between two nodes and is seen by neither
// the caller nor the service.
const (
	// hopKey is the token of the tenure that the call is meant for. Whoever finds it
	// serves the call in that tenure or refuses it: it is not forwarded again.
	hopKey = "eldest-hop"
	// fromKey is the id of the node that forwarded, escaped as in a URL.
	fromKey = "eldest-from"
	// agentKey and authorityKey are what the caller had sent as "user-agent" and
	// ":authority", in whose places gRPC puts those of the hop.
	agentKey     = "eldest-user-agent"
	authorityKey = "eldest-authority"
	// oddKey has in pairs, key and value, what gRPC accepts of a caller and does not send
	// itself (see odd), and who the caller is (see callerKey).
	oddKey = "eldest-odd-bin"
	// servedKey is in the trailer of every answer that a curator gives to a forwarded
	// call. An answer without it was made up by a connection that broke, or by somebody
	// who is no curator. Its first value is the token. The second, begun, is there if the call
	// has come to a handler; without it, it may go to the next leader as it came. (It is this way
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

// hop is what a forwarded call says of itself. The zero hop is that of a call that
// comes from a caller.
type hop struct {
	token eldest.Token // > 0: forwarded
	from  string
}

// hopOf reads the hop from the metadata of an incoming call. What cannot have been
// written by a curator is refused.
func hopOf(ctx context.Context) (hop, error) {
	values := metadata.ValueFromIncomingContext(ctx, hopKey)
	if len(values) == 0 {
		return hop{}, nil
	}
	token, err := strconv.ParseInt(values[0], 10, 64)
	// Parsing is more liberal than printing, and a curator prints.
	if len(values) > 1 {
		return hop{}, status.Errorf(codes.InvalidArgument, "eldest: metadata %s is there %d times: a call is forwarded once", hopKey, len(values))
	}
	if err != nil || token <= 0 || strconv.FormatInt(token, 10) != values[0] {
		return hop{}, status.Errorf(codes.InvalidArgument, "eldest: metadata %s is %.64q, not the token of one tenure", hopKey, values[0])
	}
	if n := len(metadata.ValueFromIncomingContext(ctx, oddKey)); n%2 != 0 {
		return hop{}, status.Errorf(codes.InvalidArgument, "eldest: metadata %s is there %d times: it comes in pairs", oddKey, n)
	}
	h := hop{token: eldest.Token(token)}
	if values := metadata.ValueFromIncomingContext(ctx, fromKey); len(values) > 0 {
		if h.from, err = url.PathUnescape(values[0]); err != nil {
			h.from = values[0]
		}
	}
	return h, nil
}

// served is the trailer that tells an answer of ours from one that was made up.
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
	// gRPC writes these two anew for the hop.
	delete(md, "content-type")
	delete(md, "grpc-accept-encoding")
	delete(md, servedKey)
	delete(md, oddKey)
	delete(md, callerKey)
	pairs := introduced(ctx)
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
	for _, c := range []byte(key) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

func unprintable(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' || c > '~' {
			return true
		}
	}
	return false
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

// toCaller removes from a header or a trailer of the leader's what is not the
// service's: what gRPC writes anew, or else the caller would have it twice.
func toCaller(md metadata.MD) metadata.MD {
	delete(md, "content-type")
	delete(md, "grpc-status-details-bin")
	delete(md, servedKey)
	delete(md, unaryKey)
	delete(md, refusedKey)
	return md
}
