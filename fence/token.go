package fence

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// Header is the name of the HTTP header that carries a token with the election in which
// it was won; gRPC metadata has it in lower case. See Format for the value.
const Header = "Eldest-Token"

const (
	// newestHeader is in a refusal: the newest token that was seen.
	newestHeader = "Eldest-Newest"
	// metadataKey is Header in gRPC, whose keys are in lower case.
	metadataKey = "eldest-token"
	// longest is the length of the longest valid value: each byte of the name escaped, and the
	// longest number.
	longest = 3*keys.MaxName + len("=9223372036854775807")
)

// Format returns the value of Header: the election, with every byte but letters, digits and -._~
// written as %XX, then "=", then the token in decimal: "nightly%20jobs=17". The error wraps
// eldest.ErrInvalid if the name is invalid or the token is not positive.
func Format(election string, token eldest.Token) (string, error) {
	if err := check(election, token); err != nil {
		return "", &eldest.OpError{Op: "format token", Election: election, Err: err}
	}
	return write(election, token), nil
}

// Parse reads a value of Header. It accepts what Format writes and nothing else, so that one token
// has one spelling; the error wraps eldest.ErrInvalid. The result is what the request claims: any
// client can write a header.
func Parse(value string) (election string, token eldest.Token, err error) {
	if election, token, err = read(value); err != nil {
		return "", 0, &eldest.OpError{Op: "parse token", Err: err}
	}
	return election, token, nil
}

func read(value string) (string, eldest.Token, error) {
	if len(value) > longest {
		return "", 0, fmt.Errorf("%w: %d bytes, at most %d are allowed", eldest.ErrInvalid, len(value), longest)
	}
	name, number, found := strings.Cut(value, "=")
	if !found {
		return "", 0, fmt.Errorf("%w: %.64q is not <election>=<token>", eldest.ErrInvalid, value)
	}
	token, err := strconv.ParseInt(number, 10, 64)
	if err != nil || token <= 0 {
		return "", 0, fmt.Errorf("%w: %.64q is not a token", eldest.ErrInvalid, number)
	}
	election, err := url.PathUnescape(name)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %.64q is not the escaped name of an election", eldest.ErrInvalid, name)
	}
	if err := keys.Check(election); err != nil {
		return "", 0, err
	}
	// ParseInt and PathUnescape accept more than write produces: "+7", "%61".
	if write(election, eldest.Token(token)) != value {
		return "", 0, fmt.Errorf("%w: %.64q is not in canonical form, which is %.64q", eldest.ErrInvalid, value, write(election, eldest.Token(token)))
	}
	return election, eldest.Token(token), nil
}

// write escapes as in the query of a URL, where only the unreserved characters of RFC 3986 are not
// escaped; but a space is %20, as in the rest of a URL.
func write(election string, token eldest.Token) string {
	name := strings.ReplaceAll(url.QueryEscape(election), "+", "%20")
	return name + "=" + strconv.FormatInt(int64(token), 10)
}
