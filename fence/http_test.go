package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
)

// page is a handler that answers with the token that it was given.
func page(reached *int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*reached++
		election, token, ok := fence.TokenFrom(r.Context())
		fmt.Fprint(w, election, " ", token, " ", ok)
	})
}

// ask sends one request to a handler, with these values of the header.
func ask(h http.Handler, values ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPut, "/", strings.NewReader("body"))
	for _, value := range values {
		r.Header.Add("eldest-token", value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHTTPAnswers(t *testing.T) {
	store, said := &broken{}, &sayings{}
	reached := 0
	h := newFence(t, func(cfg *fence.Config) { cfg.Store, cfg.Logger = store, said.logger() }).Handler(page(&reached))
	answers := func(want int, body string, values ...string) http.Header {
		t.Helper()
		before := reached
		w := ask(h, values...)
		require.Equal(t, want, w.Code, w.Body)
		require.Contains(t, w.Body.String(), body)
		require.Equal(t, want == http.StatusOK, reached != before)
		if want != http.StatusOK {
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		}
		return w.Header()
	}
	answers(200, "billing 17 true", "billing=17")
	answers(200, "billing 17 true", "billing=17")
	answers(200, "billing 19 true", "billing=19")
	header := answers(412, `eldest: fence election "billing": not leading: token 18 is older than 19, the newest seen`, "billing=18")
	require.Equal(t, "billing=18", header.Get("Eldest-Token"))
	require.Equal(t, "billing=19", header.Get("Eldest-Newest"))
	answers(412, "token 1 is older", "billing=1")
	answers(428, "Eldest-Token is missing")
	answers(400, "not a token", "billing=new")
	answers(400, "there are 2 of them", "billing=19", "billing=19")
	answers(400, "not <election>=<token>", "")
	answers(400, "does not belong to this election", "orders=99")
	require.Contains(t, said.String(), `level=WARN msg="an older token was refused" election=billing token=18 newest=19`)
	require.NotContains(t, said.String(), "level=ERROR")

	store.fails(errDisk)
	body := answers(503, "cannot be looked up now", "billing=20")
	require.Empty(t, body.Get("Eldest-Newest"))
	require.NotContains(t, ask(h, "billing=20").Body.String(), "secret", "what is wrong inside is nobody's business outside")
	require.Contains(t, said.String(), "level=ERROR")
	require.Contains(t, said.String(), "secret")
	store.fails(nil)
	answers(200, "billing 19 true", "billing=19")
	store.forget = true
	answers(503, "cannot be looked up now", "billing=20")
}

func TestHTTPPassMissing(t *testing.T) {
	reached := 0
	h := newFence(t, func(cfg *fence.Config) { cfg.PassMissing = true }).Handler(page(&reached))
	require.Equal(t, " 0 false", ask(h).Body.String())
	require.Equal(t, http.StatusBadRequest, ask(h, "billing=x").Code, "what is there must be right")
	require.Equal(t, http.StatusOK, ask(h, "billing=2").Code)
	require.Equal(t, http.StatusPreconditionFailed, ask(h, "billing=1").Code)
	require.Equal(t, 2, reached)
}

// Tokens of two elections are kept apart, whatever the numbers.
func TestElectionsAreKeptApart(t *testing.T) {
	reached := 0
	h := newFence(t, func(cfg *fence.Config) { cfg.Elections = []string{"billing", "a=b"} }).Handler(page(&reached))
	require.Equal(t, "billing 900 true", ask(h, "billing=900").Body.String())
	require.Equal(t, "a=b 3 true", ask(h, "a%3Db=3").Body.String())
	require.Equal(t, http.StatusPreconditionFailed, ask(h, "billing=899").Code)
	require.Equal(t, http.StatusPreconditionFailed, ask(h, "a%3Db=2").Code)
	require.Equal(t, "a=b 4 true", ask(h, "a%3Db=4").Body.String())
}

func TestTransport(t *testing.T) {
	reached := 0
	server := httptest.NewServer(newFence(t).Handler(page(&reached)))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	// post returns the status, the body, and what Refused says of them.
	post := func(te fence.Tenure) (int, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("data"))
		require.NoError(t, err)
		r.Header.Set(fence.Header, "somebody=1")
		client := http.Client{Transport: fence.Transport{Tenure: te, Base: base}}
		resp, err := client.Do(r)
		require.Equal(t, "somebody=1", r.Header.Get(fence.Header), "a RoundTripper leaves the request alone")
		if err != nil {
			return 0, "", err
		}
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, string(text), fence.Refused(resp)
	}

	older, newer := in(5), in(7)
	for _, te := range []*tenure{older, newer} {
		status, text, err := post(te)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, fmt.Sprintf("billing %d true", te.token), text)
	}
	status, text, err := post(older)
	require.Equal(t, http.StatusPreconditionFailed, status, "an answer is no error of a RoundTripper's")
	var refused *fence.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, fence.RefusedError{Election: "billing", Token: 5, Newest: 7}, *refused)
	require.ErrorIs(t, refused, eldest.ErrNotLeading)
	require.ErrorIs(t, refused, eldest.ErrDeposed)
	require.Equal(t, refused.Error()+"\n", text)

	before := reached
	older.ends(eldest.ErrSessionLost)
	status, _, err = post(older)
	require.Zero(t, status)
	require.ErrorIs(t, err, eldest.ErrNotLeading)
	require.ErrorIs(t, err, eldest.ErrSessionLost)
	require.False(t, errors.As(err, &refused), "nobody refused it")
	require.Equal(t, before, reached)
}

// Refused believes only what a fence says, of this request.
func TestWhatIsNoRefusal(t *testing.T) {
	refused := func(code int, token, newest, sent string) error {
		resp := &http.Response{StatusCode: code, Header: http.Header{}, Request: &http.Request{Header: http.Header{}}}
		for key, value := range map[string]string{fence.Header: token, "Eldest-Newest": newest} {
			if value != "" {
				resp.Header.Set(key, value)
			}
		}
		if sent != "" {
			resp.Request.Header.Set(fence.Header, sent)
		}
		return fence.Refused(resp)
	}
	require.Error(t, refused(412, "billing=5", "billing=7", "billing=5"))
	require.Error(t, refused(412, "billing=5", "billing=7", ""), "whoever put it there")
	for name, err := range map[string]error{
		"nothing":                     fence.Refused(nil),
		"another status":              refused(409, "billing=5", "billing=7", "billing=5"),
		"a 412 of the handler's":      refused(412, "", "", "billing=5"),
		"without the newest":          refused(412, "billing=5", "", "billing=5"),
		"a newest that is none":       refused(412, "billing=5", "7", "billing=5"),
		"a newest of another":         refused(412, "billing=5", "orders=7", "billing=5"),
		"a newest that is no newer":   refused(412, "billing=5", "billing=5", "billing=5"),
		"to somebody else's election": refused(412, "orders=5", "orders=7", "billing=5"),
		"to somebody else's token":    refused(412, "billing=4", "billing=7", "billing=5"),
	} {
		require.NoError(t, err, name)
	}
}

// A handler that finds an older token in its own store answers as the fence does.
func TestHandlerRefusesItself(t *testing.T) {
	h := newFence(t).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		election, token, _ := fence.TokenFrom(r.Context())
		(&fence.RefusedError{Election: election, Token: token, Newest: token + 1}).ServeHTTP(w, r)
	}))
	resp := ask(h, "billing=5").Result()
	require.NoError(t, resp.Body.Close())
	require.ErrorIs(t, fence.Refused(resp), eldest.ErrNotLeading)
}

// A request whose sender went away is not admitted by a store that noticed.
func TestTheSenderWentAway(t *testing.T) {
	store, said := &broken{err: context.Canceled}, &sayings{}
	f := newFence(t, func(cfg *fence.Config) { cfg.Store, cfg.Logger = store, said.logger() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.Admit(ctx, "billing", 5)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, eldest.ErrNotLeading)
	require.Empty(t, said.String(), "the store is well")
}
