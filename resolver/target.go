package resolver

import (
	"fmt"
	"net/url"
	"strings"

	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/observe"
)

// Scheme is the scheme of targets.
const Scheme = "eldest"

// Target returns the target of an election: eldest:///<election>, with the characters escaped that
// have a meaning in URLs.
func Target(election string) string { return Scheme + ":///" + url.PathEscape(election) }

// electionOf parses a target. The error is an *eldest.OpError that wraps eldest.ErrInvalid.
func electionOf(target grpcresolver.Target) (string, error) {
	u := target.URL
	name, rooted := strings.CutPrefix(u.EscapedPath(), "/")
	switch {
	case u.Scheme != Scheme:
		return "", bad(target, "its scheme is not "+Scheme)
	case u.Host != "" || u.User != nil:
		return "", bad(target, "it has a host, but the resolver's config determines how the leader is found")
	case u.Opaque != "" || !rooted:
		return "", bad(target, "the election must follow three slashes")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", bad(target, "'?' and '#' in an election's name are escaped; see Target")
	}
	election, err := url.PathUnescape(name)
	if err != nil {
		return "", bad(target, err.Error())
	}
	if err := (observe.Config{Election: election}).Check(); err != nil {
		return "", &eldest.OpError{Op: "resolve", Election: election, Err: err}
	}
	return election, nil
}

func bad(target grpcresolver.Target, why string) error {
	return &eldest.OpError{Op: "resolve", Err: fmt.Errorf("%w: the target %q is not %s:///<election>: %s", eldest.ErrInvalid, target.URL.String(), Scheme, why)}
}
