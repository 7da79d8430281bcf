package fence

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/eldest-io/eldest"
)

// Tenure is what the client side needs of a leadership; *election.Leadership is one. Its
// methods must be safe for concurrent use and must not block.
type Tenure interface {
	// Election is the election's name.
	Election() string
	// Token names the tenure; it never changes.
	Token() eldest.Token
	// Err returns nil during the tenure, then why it ended.
	Err() error
}

// stamp returns the value of Header for a tenure that has not ended on this side, else why nothing
// is sent.
func stamp(t Tenure) (string, error) {
	if v := reflect.ValueOf(t); t == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", &eldest.OpError{Op: "fenced request", Err: fmt.Errorf("%w: the tenure is nil", eldest.ErrInvalid)}
	}
	if err := ended(t); err != nil {
		return "", err
	}
	return Format(t.Election(), t.Token())
}

// ended returns why a tenure is over, or nil.
func ended(t Tenure) error {
	if err := t.Err(); err != nil {
		return &eldest.OpError{Op: "fenced request", Election: t.Election(), Err: fmt.Errorf("%w: %w", eldest.ErrNotLeading, err)}
	}
	return nil
}

// Transport is an http.RoundTripper that puts a tenure's token on each request, and sends
// none after the tenure's end. Make one for each tenure, over a Base that they share; it
// may be copied. Safe for concurrent use.
type Transport struct {
	// Tenure whose token is sent. Required.
	Tenure Tenure
	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends a copy of the request with the token. If the tenure has ended nothing is sent and
// the error wraps eldest.ErrNotLeading and the cause of the end; without a Tenure it wraps
// eldest.ErrInvalid. An answer is returned as it is, whatever its status, as http.RoundTripper
// requires: call Refused.
//
// The tenure is checked before the request is sent. Give the request the leading context, and it is
// cancelled when the tenure ends.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	value, err := stamp(t.Tenure)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close it, also when it fails
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set(Header, value)
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}
