package fence_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// account is what is fenced: a value, and the newest token that has written it, kept
// together as a database would.
type account struct {
	mu     sync.Mutex
	value  string
	newest eldest.Token
}

// write writes whatever comes.
func (a *account) write(value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.value = value
}

// writeBy checks and writes in one step; it returns the newest token.
func (a *account) writeBy(token eldest.Token, value string) eldest.Token {
	a.mu.Lock()
	defer a.mu.Unlock()
	if token >= a.newest {
		a.newest, a.value = token, value
	}
	return a.newest
}

func (a *account) read() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.value
}

// What the package does not guarantee, and what does: an older leader's request is
// admitted, the newer leader's comes and writes, and then the older one writes. Checked
// only before the handler, it writes over the newer value; checked where it is written, it
// is refused. tests/sqlite has the same with a database.
func TestAdmittedBeforeANewerOne(t *testing.T) {
	for name, exact := range map[string]bool{"checked before the handler": false, "checked where it is written": true} {
		t.Run(name, func(t *testing.T) {
			a := &account{}
			inside, goOn := make(chan struct{}), make(chan struct{})
			h := newFence(t).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				election, token, ok := fence.TokenFrom(r.Context())
				if !ok {
					t.Error("no token")
				}
				if token == 5 { // the garbage collector, the disk, the network
					close(inside)
					<-goOn
				}
				value := r.URL.Query().Get("value")
				if !exact {
					a.write(value)
				} else if newest := a.writeBy(token, value); newest > token {
					(&fence.RefusedError{Election: election, Token: token, Newest: newest}).ServeHTTP(w, r)
				}
			}))
			server := httptest.NewServer(h)
			defer server.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			set := func(te fence.Tenure, value string) error {
				ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"?value="+value, nil)
				if err != nil {
					return err
				}
				resp, err := fence.Transport{Tenure: te, Base: base}.RoundTrip(r)
				if err != nil {
					return err
				}
				defer func() { _ = resp.Body.Close() }()
				return fence.Refused(resp)
			}

			late := make(chan error, 1)
			go func() { late <- set(in(5), "older") }()
			select {
			case <-inside:
			case err := <-late:
				require.FailNow(t, "it was not admitted", "%v", err)
			}
			require.NoError(t, set(in(7), "newer"))
			require.Equal(t, "newer", a.read())
			close(goOn)
			err := <-late
			if exact {
				require.ErrorIs(t, err, eldest.ErrNotLeading)
				require.Equal(t, "newer", a.read())
				return
			}
			require.NoError(t, err)
			require.Equal(t, "older", a.read(), "this is what the check by itself cannot prevent")
		})
	}
}
