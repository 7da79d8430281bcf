package fence

import "net/http"

// Transport is an http.RoundTripper that puts a tenure's token on each request, and sends
// none after the tenure's end. Make one for each tenure, over a Base that they share; it
// may be copied. Safe for concurrent use.
type Transport struct {
	// Tenure whose token is sent. Required.
	Tenure Tenure
	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends a copy of the request with the token. If the tenure has ended nothing is
// sent and the error wraps eldest.ErrNotLeading and the cause of the end; without a Tenure
// it wraps eldest.ErrInvalid. An answer comes back as it is, whatever it says, as
// http.RoundTripper has it: ask Refused.
//
// The tenure is looked at before the request is sent. Give the request the leading
// context, and it is broken off when the tenure ends.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	value, err := stamp(t.Tenure)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // what a RoundTripper owes, also when it fails
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
