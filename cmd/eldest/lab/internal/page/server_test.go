package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// fake is a source.
type fake struct {
	log *feed.Log

	mu    sync.Mutex
	acts  []feed.Action
	plays []feed.Scenario
	fails error
	// begun, if set, makes Do send to it, and then wait for the end of its context.
	begun chan struct{}
}

func (f *fake) Info() feed.Info { return feed.Info{Mode: "sandbox", Election: "jobs", Version: "<v>"} }
func (f *fake) Log() *feed.Log  { return f.log }
func (f *fake) Done() feed.Scenario {
	f.mu.Lock()
	defer f.mu.Unlock()
	done := feed.Scenario{Name: "done", Steps: []feed.Step{}}
	for _, a := range f.acts {
		done.Steps = append(done.Steps, feed.Step{AfterMS: 1, Action: a})
	}
	return done
}

func (f *fake) Do(ctx context.Context, a feed.Action) error {
	if f.begun != nil {
		f.begun <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acts = append(f.acts, a)
	return f.fails
}

func (f *fake) Play(_ context.Context, s feed.Scenario) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plays = append(f.plays, s)
	return f.fails
}

// site is a server that serves a fake.
type site struct {
	*fake
	t           *testing.T
	host, token string
	// client has no cookies of its own, and follows no redirect.
	client *http.Client
	// end ends the server, and waits for it.
	end func() error
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

func serve(t *testing.T) *site {
	t.Helper()
	f := &fake{log: feed.NewLog()}
	server, err := New(Config{Source: f, Listener: listen(t)})
	require.NoError(t, err)
	require.True(t, server.Loopback())
	address, token, _ := strings.Cut(server.Address(), "/?token=")
	require.Len(t, token, 32, "128 bits")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	s := &site{fake: f, t: t, host: strings.TrimPrefix(address, "http://"), token: token}
	s.end = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return errors.Join(err, server.Close())
		case <-time.After(patience):
			return errors.New("the server does not end")
		}
	})
	transport := &http.Transport{}
	s.client = &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		require.NoError(t, s.end())
		transport.CloseIdleConnections()
	})
	return s
}

// cookie is the cookie of the page.
func (s *site) cookie() *http.Cookie {
	_, port, _ := net.SplitHostPort(s.host)
	return &http.Cookie{Name: "eldest-lab-" + port, Value: s.token}
}

// send sends a request, with the cookie; change changes it before.
func (s *site) send(method, path, body string, change func(*http.Request)) *http.Response {
	s.t.Helper()
	r, err := http.NewRequest(method, "http://"+s.host+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.AddCookie(s.cookie())
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	resp, err := s.client.Do(r)
	require.NoError(s.t, err)
	return resp
}

// reply is an answer, without its body.
type reply struct {
	code    int
	header  http.Header
	cookies []*http.Cookie
}

// ask is send for answers that end; text is the body.
func (s *site) ask(method, path, body string, change func(*http.Request)) (got reply, text string) {
	s.t.Helper()
	resp := s.send(method, path, body, change)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return reply{resp.StatusCode, resp.Header, resp.Cookies()}, string(data)
}

func (s *site) get(path string) (code int, text string) {
	s.t.Helper()
	got, text := s.ask(http.MethodGet, path, "", nil)
	return got.code, text
}

func withoutCookie(r *http.Request) { r.Header.Del("Cookie") }

func TestTokenIsNeeded(t *testing.T) {
	s := serve(t)
	require.NotEqual(t, s.token, serve(t).token)
	for _, path := range []string{"/", "/info", "/events", "/done", "/assets/index.html", "/no-such-page", "/?token=", "/?token=" + s.token[1:], "/info?token=" + s.token} {
		got, text := s.ask(http.MethodGet, path, "", withoutCookie)
		require.Equal(t, http.StatusForbidden, got.code, path)
		require.Contains(t, text, "has printed")
		require.NotContains(t, text, s.token)
	}
	for _, path := range []string{"/do", "/play"} {
		got, _ := s.ask(http.MethodPost, path, "{}", withoutCookie)
		require.Equal(t, http.StatusForbidden, got.code, path)
	}
	got, _ := s.ask(http.MethodGet, "/", "", func(r *http.Request) {
		withoutCookie(r)
		r.AddCookie(&http.Cookie{Name: s.cookie().Name, Value: "guessed"})
	})
	require.Equal(t, http.StatusForbidden, got.code)

	got, _ = s.ask(http.MethodGet, "/?token="+s.token, "", withoutCookie)
	require.Equal(t, http.StatusSeeOther, got.code)
	require.Equal(t, "/", got.header.Get("Location"), "the address bar shows no token")
	cookies := got.cookies
	require.Len(t, cookies, 1)
	require.Equal(t, s.cookie().Name, cookies[0].Name)
	require.Equal(t, s.token, cookies[0].Value)
	require.Equal(t, "/", cookies[0].Path)
	require.True(t, cookies[0].HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookies[0].SameSite)

	code, _ := s.get("/")
	require.Equal(t, http.StatusOK, code)
	code, _ = s.get("/no-such-page")
	require.Equal(t, http.StatusNotFound, code)
	require.Empty(t, s.acts)
}

func TestOtherHostsAreRefused(t *testing.T) {
	s := serve(t)
	_, port, _ := net.SplitHostPort(s.host)
	for host, want := range map[string]int{
		s.host:                 http.StatusOK,
		"localhost:" + port:    http.StatusOK,
		"evil.example:" + port: http.StatusMisdirectedRequest,
		"evil.example":         http.StatusMisdirectedRequest,
		"127.0.0.1:1":          http.StatusMisdirectedRequest,
		"127.0.0.1":            http.StatusMisdirectedRequest,
		"127.0.0.2:" + port:    http.StatusMisdirectedRequest,
		"[::1]:" + port:        http.StatusMisdirectedRequest,
	} {
		got, _ := s.ask(http.MethodGet, "/info", "", func(r *http.Request) { r.Host = host })
		require.Equal(t, want, got.code, host)
		got, _ = s.ask(http.MethodGet, "/?token="+s.token, "", func(r *http.Request) { r.Host = host })
		require.Equal(t, want != http.StatusOK, got.code == http.StatusMisdirectedRequest, host)
	}
}

func TestPosts(t *testing.T) {
	s := serve(t)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
		code   int
		text   string
	}{
		"plain text":      {`{"do":"kill"}`, header("Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "application/json"},
		"a form":          {`do=kill`, header("Content-Type", "application/x-www-form-urlencoded"), http.StatusUnsupportedMediaType, "application/json"},
		"no type":         {`{"do":"kill"}`, func(r *http.Request) { r.Header.Del("Content-Type") }, http.StatusUnsupportedMediaType, "application/json"},
		"another origin":  {`{"do":"kill"}`, header("Origin", "http://evil.example"), http.StatusForbidden, "only the page"},
		"another port":    {`{"do":"kill"}`, header("Origin", "http://127.0.0.1:1"), http.StatusForbidden, "only the page"},
		"no named origin": {`{"do":"kill"}`, header("Origin", "null"), http.StatusForbidden, "only the page"},
		"unknown field":   {`{"do":"kill","whom":"p1"}`, nil, http.StatusBadRequest, "whom"},
		"another type":    {`{"do":1}`, nil, http.StatusBadRequest, "invalid"},
		"no JSON":         {`kill p1`, nil, http.StatusBadRequest, "invalid"},
		"nothing":         {``, nil, http.StatusBadRequest, "invalid"},
		"two values":      {`{"do":"kill"}{"do":"kill"}`, nil, http.StatusBadRequest, "more than one"},
		"too much":        {`{"do":"` + strings.Repeat("x", maxBody) + `"}`, nil, http.StatusRequestEntityTooLarge, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, text := s.ask(http.MethodPost, "/do", c.body, c.change)
			require.Equal(t, c.code, got.code, text)
			require.Contains(t, text, c.text)
		})
	}
	require.Empty(t, s.acts)

	for _, origin := range []string{"", "http://" + s.host} {
		got, text := s.ask(http.MethodPost, "/do", `{"do":"kill","on":"p1"}`, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
		})
		require.Equal(t, http.StatusOK, got.code)
		require.JSONEq(t, `{}`, text)
	}
	require.Equal(t, []feed.Action{{Do: feed.Kill, On: "p1"}, {Do: feed.Kill, On: "p1"}}, s.acts)

	got, _ := s.ask(http.MethodPost, "/play", `{"name":"n","steps":[{"after_ms":5,"do":"stop","on":"p2"}]}`, nil)
	require.Equal(t, http.StatusOK, got.code)
	require.Equal(t, []feed.Scenario{{Name: "n", Steps: []feed.Step{{AfterMS: 5, Action: feed.Action{Do: feed.Stop, On: "p2"}}}}}, s.plays)

	for _, path := range []string{"/do", "/play"} {
		s.fails = fmt.Errorf("%w: p1 is dead", feed.ErrRefused)
		got, text := s.ask(http.MethodPost, path, `{}`, nil)
		require.Equal(t, http.StatusConflict, got.code)
		require.JSONEq(t, `{"error":"not done: p1 is dead"}`, text)
		s.fails = errors.New("etcd does not answer")
		got, text = s.ask(http.MethodPost, path, `{}`, nil)
		require.Equal(t, http.StatusInternalServerError, got.code)
		require.JSONEq(t, `{"error":"etcd does not answer"}`, text)

		code, _ := s.get(path)
		require.Equal(t, http.StatusMethodNotAllowed, code)
	}
	code, text := s.get("/done")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, `{"after_ms":1,"do":"kill","on":"p1"}`)
	code, text = s.get("/info")
	require.Equal(t, http.StatusOK, code)
	var info feed.Info
	require.NoError(t, json.Unmarshal([]byte(text), &info))
	require.Equal(t, s.Info(), info)
}

func TestHeaders(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/", "/info", "/no-such-page", "/assets/index.html", "/favicon.ico"} {
		for _, change := range []func(*http.Request){nil, withoutCookie} {
			got, _ := s.ask(http.MethodGet, path, "", change)
			for name, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
					"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
				"X-Content-Type-Options":       "nosniff",
				"Referrer-Policy":              "no-referrer",
				"Cache-Control":                "no-store",
				"Cross-Origin-Resource-Policy": "same-origin",
			} {
				require.Equal(t, want, got.header.Get(name), "%s of %s", name, path)
			}
			require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
		}
	}
}

func TestAssets(t *testing.T) {
	s := serve(t)
	found := 0
	require.NoError(t, fs.WalkDir(assets, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found++
		require.NotEmpty(t, kinds[path.Ext(name)], "%s has no content type", name)
		got, text := s.ask(http.MethodGet, "/"+name, "", nil)
		require.Equal(t, http.StatusOK, got.code, name)
		require.Equal(t, kinds[path.Ext(name)], got.header.Get("Content-Type"))
		data, err := fs.ReadFile(assets, name)
		require.Equal(t, string(data), text)
		return err
	}))
	require.Greater(t, found, 2)
	got, text := s.ask(http.MethodGet, "/", "", nil)
	require.Equal(t, "text/html; charset=utf-8", got.header.Get("Content-Type"))
	require.Contains(t, text, "<html")
	for _, name := range []string{"", "no-such.js", "..%2fserver.go", "%2e%2e/doc.go", "index.html/"} {
		code, _ := s.get("/assets/" + name)
		require.NotEqual(t, http.StatusOK, code, name)
	}
}

// Streams, and actions that have not ended, end with the server, which waits for them.
func TestEverythingEndsWithTheServer(t *testing.T) {
	s := serve(t)
	messages, _ := s.stream("", nil)
	s.begun = make(chan struct{})
	answered := make(chan int, 1)
	go func() {
		r, err := http.NewRequest(http.MethodPost, "http://"+s.host+"/do", strings.NewReader(`{"do":"kill"}`))
		if err != nil {
			answered <- 0
			return
		}
		r.AddCookie(s.cookie())
		r.Header.Set("Content-Type", "application/json")
		resp, err := s.client.Do(r)
		if err != nil {
			answered <- 0
			return
		}
		_ = resp.Body.Close()
		answered <- resp.StatusCode
	}()
	<-s.begun
	began := time.Now()
	require.NoError(t, s.end())
	require.Less(t, time.Since(began), patience/2)
	require.Equal(t, http.StatusInternalServerError, <-answered, "the action was not done")
	_, err := io.ReadAll(messages)
	if err != nil { // the stream may end in the middle
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	_, err = net.Dial("tcp", s.host)
	require.Error(t, err, "nothing listens any more")
}

func TestClose(t *testing.T) {
	server, err := New(Config{Listener: listen(t)})
	require.NoError(t, err)
	require.NoError(t, server.Close())
	require.NoError(t, server.Close(), "a second time does nothing")
}
