package main

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// tenure is a tenure that does not notice its end.
type tenure eldest.Token

func (tenure) Election() string      { return "counting" }
func (t tenure) Token() eldest.Token { return eldest.Token(t) }
func (tenure) Err() error            { return nil }

// The ledger fulfils the contract of fence.Store, over a restart too.
func TestStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	l, err := openLedger(t.Context(), file, true)
	require.NoError(t, err)
	advances := func(l *ledger, election string, token, want eldest.Token) {
		t.Helper()
		newest, err := l.Advance(t.Context(), election, token)
		require.NoError(t, err)
		require.Equal(t, want, newest)
	}
	advances(l, "a", 5, 5)
	advances(l, "a", 5, 5)
	advances(l, "a", 4, 5)
	advances(l, "A", 1, 1)
	advances(l, "\xff\x00", 3, 3) // any bytes
	advances(l, "a", 9, 9)
	require.NoError(t, l.close())
	l = open(t, file, true)
	advances(l, "a", 8, 9)
	advances(l, "\xff\x00", 2, 3)
	require.ErrorContains(t, etcdtest.Err(l.Advance(t.Context(), "a", 0)), "CHECK constraint", "no token")
	advances(l, "a", 9, 9)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, etcdtest.Err(l.Advance(gone, "a", 10)), context.Canceled)
}

// A transaction that is refused changes nothing, and one that fails is rolled back.
func TestTransactionsAreWhole(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "db"), true)
	require.NoError(t, l.set(t.Context(), "counting", 5, "a", 1))
	n, err := l.begin(t.Context(), "counting", 7)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	err = l.set(t.Context(), "counting", 5, "a", 2)
	var refused *fence.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, fence.RefusedError{Election: "counting", Token: 5, Newest: 7}, *refused)
	require.ErrorIs(t, etcdtest.Err(l.begin(t.Context(), "counting", 6)), eldest.ErrNotLeading)
	failed := errors.New("no")
	err = l.in(t.Context(), "counting", 9, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "UPDATE counter SET n = 100")
		return errors.Join(err, failed)
	})
	require.ErrorIs(t, err, failed)
	require.NoError(t, l.set(t.Context(), "counting", 7, "b", 2), "9 was not remembered: it has written nothing")
	require.Equal(t, []entry{{"a", 5, 1}, {"b", 7, 2}}, l.trail(t))
}

// The tokens in the log never decrease with concurrent writers: two handles, as in two processes,
// and many goroutines.
func TestConcurrentSafe(t *testing.T) {
	const writers, writes, tokens = 8, 25, 40
	file := filepath.Join(t.TempDir(), "db")
	handles := []*ledger{open(t, file, true), open(t, file, true)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	for writer := range writers {
		random := rand.New(rand.NewPCG(1, uint64(writer)))
		wg.Go(func() {
			for i := range writes {
				// Slowly increasing, and often older than the token of another writer.
				token := eldest.Token(1 + i*tokens/writes + random.IntN(10))
				err := handles[writer%2].set(t.Context(), "counting", token, strconv.Itoa(writer), int64(i))
				if err != nil {
					if !errors.Is(err, eldest.ErrNotLeading) {
						t.Error(err)
					}
					continue
				}
				mu.Lock()
				accepted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	trail := handles[0].trail(t)
	require.Len(t, trail, accepted, "what was accepted, and nothing else")
	require.Greater(t, accepted, 1)
	require.Less(t, accepted, writers*writes)
	for i, e := range trail[1:] {
		require.GreaterOrEqual(t, e.token, trail[i].token)
	}
}

// The ledger is used behind a fence's middleware, with one file for both. A request of the older
// leader is admitted and waits; a request of the newer leader comes and writes; then the older one
// writes. Only the transaction can refuse it, since it was admitted.
func TestAdmittedBeforeANewerOne(t *testing.T) {
	for name, exact := range map[string]bool{"checked before the handler": false, "checked in the transaction": true} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "db")
			l := open(t, file, exact) // the handler writes with it
			f, err := fence.New(fence.Config{Elections: []string{"counting"}, Store: open(t, file, true)})
			require.NoError(t, err)
			inside, goOn := make(chan struct{}), make(chan struct{})
			server := httptest.NewServer(f.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				election, token, _ := fence.TokenFrom(r.Context())
				if token == 5 {
					close(inside)
					<-goOn
				}
				var refused *fence.RefusedError
				switch err := l.set(r.Context(), election, token, "node", int64(token)); {
				case errors.As(err, &refused):
					refused.ServeHTTP(w, r)
				case err != nil:
					http.Error(w, err.Error(), http.StatusInternalServerError)
				}
			})))
			defer server.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			send := func(te tenure) (int, error) {
				ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
				if err != nil {
					return 0, err
				}
				resp, err := fence.Transport{Tenure: te, Base: base}.RoundTrip(r)
				if err != nil {
					return 0, err
				}
				defer func() { _ = resp.Body.Close() }()
				return resp.StatusCode, fence.Refused(resp)
			}
			type answer struct {
				status int
				err    error
			}
			late := make(chan answer, 1)
			go func() {
				status, err := send(5)
				late <- answer{status, err}
			}()
			select {
			case <-inside:
			case got := <-late:
				require.FailNow(t, "it was not admitted", "%v", got)
			}
			status, err := send(7)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
			close(goOn)
			got := <-late
			if exact {
				require.ErrorIs(t, got.err, eldest.ErrNotLeading)
				require.Equal(t, []entry{{"node", 7, 7}}, l.trail(t))
				return
			}
			require.Equal(t, answer{status: http.StatusOK}, got)
			require.Equal(t, []entry{{"node", 7, 7}, {"node", 5, 5}}, l.trail(t), "the middleware alone cannot prevent it")
		})
	}
}
