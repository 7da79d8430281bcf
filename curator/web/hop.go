package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
)

// The headers of a forwarded request. Neither callers nor handlers see them.
const (
	// hopHeader is the token of the tenure that the request is meant for. A node that
	// receives it serves the request in that tenure or refuses it.
	hopHeader = "Eldest-Hop"
	// fromHeader is the ID of the node that forwarded the request, escaped as in a URL.
	fromHeader = "Eldest-From"
)

// hop is what the headers of a forwarded request contain. The zero hop means that the request comes
// from a caller.
type hop struct {
	token    eldest.Token // > 0: forwarded
	from     string
	verified bool // from is the node that sent it
}

type hopKey struct{}

// Forwarded returns, for the context of a request in a handler, which node has forwarded the
// request and for which tenure. ok is false if no node has, and if it was not verified that it was
// this node (Config.VerifyHop). Forwarded does not block.
func Forwarded(ctx context.Context) (node string, token eldest.Token, ok bool) {
	h, _ := ctx.Value(hopKey{}).(hop)
	if !h.verified {
		return "", 0, false
	}
	return h.from, h.token, true
}

// NodeCertificate is a Config.VerifyHop for mutual TLS, by the rules of
// curator.NodeCertificate: the client's certificate was verified by the server and names
// the node, not by a wildcard. It does not block and is safe for concurrent use.
func NodeCertificate(r *http.Request, node string) error {
	if r.TLS == nil {
		return errors.New("it was sent without TLS")
	}
	// The rule is package curator's, which needs the connection in gRPC's form.
	info := credentials.TLSInfo{State: *r.TLS}
	return curator.NodeCertificate(grpcpeer.NewContext(r.Context(), &grpcpeer.Peer{AuthInfo: info}), node)
}

// errMalformed is for a hop that no Front can have written; errForged for one from another sender
// than it names.
var (
	errMalformed = errors.New("malformed hop")
	errForged    = errors.New("the hop is refused")
)

// hopOf reads and verifies the hop of a request. It returns the request as the caller sent
// it, without the hop's headers.
func hopOf(r *http.Request, verify func(*http.Request, string) error) (hop, *http.Request, error) {
	tokens, from := r.Header[hopHeader], r.Header.Get(fromHeader)
	if _, ok := r.Header[fromHeader]; len(tokens) == 0 && !ok {
		return hop{}, r, nil
	}
	bare := r.WithContext(r.Context())
	bare.Header = r.Header.Clone()
	bare.Header.Del(hopHeader)
	bare.Header.Del(fromHeader)
	if len(tokens) == 0 {
		return hop{}, bare, nil
	}
	// ParseInt accepts more than FormatInt writes, and a Front uses FormatInt.
	token, err := strconv.ParseInt(tokens[0], 10, 64)
	if len(tokens) > 1 || err != nil || token <= 0 || strconv.FormatInt(token, 10) != tokens[0] {
		return hop{}, nil, fmt.Errorf("%w: header %s is %.64q, not the token of one tenure", errMalformed, hopHeader, tokens)
	}
	h := hop{token: eldest.Token(token)}
	if h.from, err = url.PathUnescape(from); err != nil {
		return hop{}, nil, fmt.Errorf("%w: header %s is %.64q", errMalformed, fromHeader, from)
	}
	if verify == nil && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
		return h, bare, nil
	}
	if verify == nil {
		verify = NodeCertificate
	}
	if err := verify(r, h.from); err != nil {
		return hop{}, nil, fmt.Errorf("%w: the request claims to have been forwarded by node %.64q: %w", errForged, h.from, err)
	}
	h.verified = true
	return h, bare.WithContext(context.WithValue(bare.Context(), hopKey{}, h)), nil
}

// put adds the hop to a request to the leader.
func (h hop) put(header http.Header) {
	header.Set(hopHeader, strconv.FormatInt(int64(h.token), 10))
	header.Set(fromHeader, url.PathEscape(h.from))
}
