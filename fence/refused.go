package fence

import (
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence/fencepb"
	"github.com/eldest-io/eldest/keys"
)

// RefusedError is the refusal of a token that is older than one that was seen: its tenure is over.
// It wraps eldest.ErrNotLeading and eldest.ErrDeposed. On the server side a handler that finds an
// older token in its own store may answer with one; on the client side such an answer becomes one.
// It is immutable.
//
// Invariant: 0 < Token < Newest.
type RefusedError struct {
	// Election is the election in which both tokens were won.
	Election string
	// Token is the token that was refused, Newest the newest one that was seen.
	Token, Newest eldest.Token
}

// Error names the election and both tokens.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("eldest: fence election %.1100q: %v: token %d is older than %d, the newest seen",
		e.Election, eldest.ErrNotLeading, e.Token, e.Newest)
}

// Unwrap returns eldest.ErrNotLeading and eldest.ErrDeposed.
func (e *RefusedError) Unwrap() []error { return []error{eldest.ErrNotLeading, eldest.ErrDeposed} }

// Tenure returns the election and the token that was refused.
func (e *RefusedError) Tenure() (election string, token eldest.Token) { return e.Election, e.Token }

// GRPCStatus returns what the error becomes when a gRPC handler returns it: FAILED_PRECONDITION,
// with a fencepb.Refused in its details.
func (e *RefusedError) GRPCStatus() *status.Status {
	st := status.New(codes.FailedPrecondition, e.Error())
	detailed, err := st.WithDetails(&fencepb.Refused{Election: []byte(e.Election), Token: int64(e.Token), Newest: int64(e.Newest)})
	if err != nil {
		return st
	}
	return detailed
}

// ServeHTTP answers a request with 412 Precondition Failed: the error's text as the body,
// the token that was refused in the header Eldest-Token and the newest one in
// Eldest-Newest. Nothing else may have been written.
func (e *RefusedError) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(Header, write(e.Election, e.Token))
	w.Header().Set(newestHeader, write(e.Election, e.Newest))
	answer(w, http.StatusPreconditionFailed, e.Error())
}

// Refused returns the *RefusedError that an HTTP answer represents, else nil: then the answer is
// something else, whatever its status is. It reads the header and leaves the body alone.
func Refused(resp *http.Response) error {
	if resp == nil || resp.StatusCode != http.StatusPreconditionFailed {
		return nil
	}
	if resp.Request != nil {
		// The answer to another client's request, which was passed on, does not concern this
		// tenure.
		if sent := resp.Request.Header.Get(Header); sent != "" && sent != resp.Header.Get(Header) {
			return nil
		}
	}
	election, token, wrong := Parse(resp.Header.Get(Header))
	same, newest, none := Parse(resp.Header.Get(newestHeader))
	if wrong == nil && none == nil && same == election && token < newest {
		return &RefusedError{Election: election, Token: token, Newest: newest}
	}
	return nil
}

// understood returns the *RefusedError that a gRPC status represents, if it concerns this tenure,
// else err itself.
func understood(t Tenure, err error) error {
	if status.Code(err) != codes.FailedPrecondition {
		return err
	}
	for _, detail := range status.Convert(err).Details() {
		refused, ok := detail.(*fencepb.Refused)
		if !ok || keys.Check(string(refused.GetElection())) != nil || refused.GetNewest() <= refused.GetToken() {
			continue
		}
		e := &RefusedError{
			Election: string(refused.GetElection()),
			Token:    eldest.Token(refused.GetToken()), Newest: eldest.Token(refused.GetNewest()),
		}
		if e.Election == t.Election() && e.Token == t.Token() {
			return e
		}
	}
	return err
}

// answer writes an answer that must not be cached.
func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, code)
}
