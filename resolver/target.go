package resolver

import (
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
	election, rooted := strings.CutPrefix(u.Path, "/")
	switch {
	case u.Scheme != Scheme:
		return "", bad(u, "its scheme is not "+Scheme)
	case u.Host != "" || u.User != nil:
		return "", bad(u, "it has a host, but the resolver's config determines how the leader is found")
	case !rooted:
		return "", bad(u, "the election must follow three slashes")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", bad(u, "'?' and '#' in an election's name are escaped; see Target")
	}
	if err := (observe.Config{Election: election}).Check(); err != nil {
		return "", &eldest.OpError{Op: "resolve", Election: election, Err: err}
	}
	return election, nil
}

func bad(target url.URL, why string) error {
	return invalid("the target %q is not %s:///<election>: %s", target.String(), Scheme, why)
}
