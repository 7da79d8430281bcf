package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
)

// Leader and follower answer alike: the request and the answer arrive as they were sent, including
// trailers, whose values are known only after the body.
func TestForwardedAsItWasSent(t *testing.T) {
	type seen struct {
		method, uri, host, body string
		length                  int64
		header, trailer         http.Header
		hop                     bool
	}
	var saw seen
	leader, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _, hop := Forwarded(r.Context())
		saw = seen{r.Method, r.RequestURI, r.Host, string(body), r.ContentLength, r.Header.Clone(), r.Trailer.Clone(), hop}
		w.Header().Set("Trailer", "Sum")
		w.Header().Set("X-Answer", "42")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("short and stout"))
		w.Header().Set("Sum", "7")
	})
	host := strings.TrimPrefix(follower.server.URL, "http://")
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodPut} {
		for _, body := range []string{"", "something"} {
			send := func(n *node) seen {
				var in io.Reader
				if body != "" {
					in = strings.NewReader(body)
				}
				out := n.send(method, "/a%2Fb//c?q=1;2&r=%zz&s", in,
					"Idempotency-Key", "k", "X-Own", "one", "X-Own", "two", "Forwarded", "for=x", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "gopher",
					"Eldest-From", "nobody", "Eldest-Token", "fence")
				require.NoError(t, out.err)
				require.Equal(t, http.StatusTeapot, out.StatusCode)
				require.Equal(t, []string{"short and stout", "42", "7"}, []string{out.body, out.Header.Get("X-Answer"), out.Trailer.Get("Sum")})
				return saw
			}
			direct, hopped := send(leader), send(follower)
			require.NotContains(t, direct.header, fromHeader)
			require.Equal(t, "fence", direct.header.Get("Eldest-Token"))
			require.Equal(t, []string{"1.2.3.4, 127.0.0.1", host, host},
				[]string{hopped.header.Get("X-Forwarded-For"), hopped.header.Get("X-Forwarded-Host"), hopped.host})
			for _, s := range []*seen{&direct, &hopped} {
				s.host = ""
				s.header.Del("X-Forwarded-For")
				s.header.Del("X-Forwarded-Host")
				s.header.Del("Content-Length") // of an empty POST: 0, or none
			}
			require.Equal(t, direct, hopped, "%s %q", method, body)
		}
	}
	pr, pw := io.Pipe()
	r, err := http.NewRequestWithContext(etcdtest.Context(t), http.MethodPost, follower.server.URL, pr)
	require.NoError(t, err)
	r.Trailer = http.Header{"Sum": nil}
	go func() {
		_, _ = pw.Write([]byte("body"))
		r.Trailer.Set("Sum", "4")
		_ = pw.Close()
	}()
	out, err := follower.server.Client().Do(r)
	require.NoError(t, err)
	require.NoError(t, out.Body.Close())
	require.Equal(t, "4", saw.trailer.Get("Sum"))
}

// begins sends a request whose answer begins before the request has ended.
func (n *node) begins(ctx context.Context, method string, body io.Reader, header http.Header) reply {
	n.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, n.server.URL, body)
	require.NoError(n.t, err)
	r.Header = header
	out, err := n.server.Client().Do(r)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = out.Body.Close() })
	return reply{Response: out}
}

// A body larger than any buffer is slowly uploaded and returned at the same time, through a
// follower. It takes longer than Config.Wait, which bounds only waiting and connecting.
func TestSlowUploadThroughAFollower(t *testing.T) {
	t.Parallel()
	_, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		says(w, "")
		_, _ = io.Copy(w, r.Body)
	}, func(cfg *Config) { cfg.Wait = time.Second })
	const pieces, size = 24, 1 << 20
	pr, pw := io.Pipe()
	out := follower.begins(etcdtest.Context(t), http.MethodPost, pr, nil)
	piece := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, size) }
	go func() {
		for i := range pieces {
			_, _ = pw.Write(piece(i))
			time.Sleep(60 * time.Millisecond)
		}
		_ = pw.Close()
	}()
	for i := range pieces {
		got := make([]byte, size)
		_, err := io.ReadFull(out.Body, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(piece(i), got))
	}
}

// A streamed answer arrives as it is written, and ends at the leader when the caller disconnects. It
// continues at an earlier address of its leader, and ends when another tenure is known.
func TestStreamThroughAFollower(t *testing.T) {
	next, ended := make(chan string, 1), make(chan error, 1)
	leader, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000") // streamed also with a length
		for {
			select {
			case s := <-next:
				says(w, s)
			case <-r.Context().Done():
				ended <- context.Cause(r.Context())
				return
			}
		}
	})
	ctx, hangUp := context.WithCancel(etcdtest.Context(t))
	defer hangUp()
	next <- "0123"
	out := follower.begins(ctx, http.MethodGet, nil, nil)
	receive := func() error {
		piece := make([]byte, 4)
		_, err := io.ReadFull(out.Body, piece)
		return err
	}
	for range 5 {
		require.NoError(t, receive())
		next <- "0123"
	}
	require.NoError(t, receive())
	hangUp()
	require.ErrorIs(t, etcdtest.Take(t, ended, "the end of the handler"), context.Canceled)

	next <- "0123"
	out = follower.begins(etcdtest.Context(t), http.MethodGet, nil, nil)
	require.NoError(t, receive())
	follower.followsAt(leader.id, "127.0.0.1:1", 7)
	time.Sleep(2 * follower.cfg.Grace)
	next <- "4567"
	require.NoError(t, receive())
	follower.followsAt("next", "127.0.0.1:1", 8)
	require.Error(t, receive())
}

// An upgraded connection passes through a follower, and ends with the tenure.
func TestUpgrade(t *testing.T) {
	leader, follower, r := pair(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer context.AfterFunc(r.Context(), func() { _ = conn.Close() })()
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		for err == nil {
			_ = rw.Flush()
			var line string
			line, err = rw.ReadString('\n')
			_, _ = rw.WriteString(line)
		}
	})
	for _, n := range []*node{leader, follower} {
		out := n.begins(context.Background(), http.MethodGet, nil, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}})
		require.Equal(t, http.StatusSwitchingProtocols, out.StatusCode)
		conn := out.Body.(io.ReadWriteCloser)
		for _, line := range []string{"one\n", strings.Repeat("two", 100_000) + "\n"} {
			_, err := io.WriteString(conn, line)
			require.NoError(t, err)
			got := make([]byte, len(line))
			_, err = io.ReadFull(conn, got)
			require.NoError(t, err)
			require.Equal(t, line, string(got))
		}
		defer func() {
			_, err := conn.Read(make([]byte, 1))
			require.Error(t, err)
		}()
	}
	r.loses(eldest.ErrDeposed)
}

// Two nodes that take each other for the leader end a request after one hop.
func TestOneHopOnly(t *testing.T) {
	t.Parallel()
	a, b := newNode(t, "a"), newNode(t, "b")
	var arrived atomic.Int64
	for _, n := range []*node{a, b} {
		n.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if arrived.Add(1) > 20 { // otherwise it would loop until no file descriptors are left
				http.Error(w, "it goes round", http.StatusLoopDetected)
				return
			}
			n.ServeHTTP(w, r)
		})
	}
	a.follows(b, 7)
	b.follows(a, 7)
	a.get().refused(t, http.StatusServiceUnavailable, "which follows node")
	b.get().refused(t, http.StatusServiceUnavailable, "which follows node")
	// A node with an older status waits briefly for its own tenure.
	b.follows(a, 5)
	a.get().refused(t, http.StatusServiceUnavailable, "which follows node")
	require.EqualValues(t, 6, arrived.Load(), "three requests, and a hop of each")
}

// A request is served in the tenure that it was forwarded for, or refused. It waits if that tenure
// is won, but not set up yet.
func TestForwardedForAnotherTenure(t *testing.T) {
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	follower.follows(leader, 7)
	early := follower.ask("/")
	leader.waits(1)
	leader.leads(7, hello)
	require.Equal(t, "hello", early().body)
	for _, token := range []eldest.Token{6, 8} {
		follower.follows(leader, token)
		follower.get().refused(t, http.StatusServiceUnavailable, fmt.Sprintf("token 7 instead of %d", token))
	}
	require.EqualValues(t, 1, leader.calls.Load())
}

// A request waits until a leader is known and can be reached. If its caller disconnects, the wait
// ends.
func TestWaitsForALeader(t *testing.T) {
	t.Parallel()
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	body := strings.Repeat("0123456789", 100_000)
	answer := follower.askFor(func() (reply, error) {
		return follower.do(etcdtest.Context(t), http.MethodPost, "/", strings.NewReader(body))
	})
	ctx, hangUp := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() { _, err := follower.do(ctx, http.MethodGet, "/", nil); gone <- err }()
	follower.waits(2)
	hangUp()
	require.ErrorIs(t, etcdtest.Take(t, gone, "the caller"), context.Canceled)
	follower.waits(1)
	follower.followsAt("dead", etcdtest.Nowhere(t), 5)
	time.Sleep(100 * time.Millisecond) // time for attempts to connect; not asserted
	leader.leads(7, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	follower.follows(leader, 7)
	require.Equal(t, body, answer().body)
	require.EqualValues(t, 1, leader.calls.Load())
	follower.waits(0)
}

// The wait is bounded by time, by number and by the end of Run, and the answer has the reason.
func TestWaitsAreBounded(t *testing.T) {
	short := newNode(t, "n", func(cfg *Config) { cfg.Wait = 20 * time.Millisecond })
	short.get().refused(t, http.StatusServiceUnavailable, "Run is not running")
	defer func(usual retry.Backoff) { lookAgain = usual }(lookAgain)
	lookAgain = func(int) time.Duration { return time.Hour } // a later attempt might have no time for its connection
	short = newNode(t, "n", func(cfg *Config) { cfg.Wait = 2 * time.Second })
	short.followsAt("dead", etcdtest.Nowhere(t), 5)
	short.get().refused(t, http.StatusServiceUnavailable, "connection refused")

	n := newNode(t, "n", func(cfg *Config) { cfg.MaxWaiting = 2 })
	ctx, stop := context.WithCancelCause(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	answers := []func() reply{n.ask("/"), n.ask("/")}
	n.waits(2)
	n.get().refused(t, http.StatusServiceUnavailable, "more than 2 requests are waiting")
	stop(errEnough)
	require.ErrorIs(t, etcdtest.Take(t, ran, "the end of Run"), errEnough)
	for _, answer := range append(answers, n.ask("/")) {
		answer().refused(t, http.StatusServiceUnavailable, "is stopping")
	}
	require.ErrorIs(t, n.Run(context.Background()), eldest.ErrClosed)
}

func TestInvalid(t *testing.T) {
	e, err := elector.New(elector.Config{Election: "test", NodeID: "n", Source: elector.Always(elector.Clients{})})
	require.NoError(t, err)
	good := Config{Node: e, Election: "test", NodeID: "n"}
	for name, change := range map[string]func(*Config){
		"no node": func(c *Config) { c.Node = nil }, "no elector": func(c *Config) { c.Node = (*elector.Elector)(nil) },
		"no curator": func(c *Config) { c.Node = (*curator.Curator)(nil) }, "no election": func(c *Config) { c.Election = "" }, "no id": func(c *Config) { c.NodeID = "" },
		"wait": func(c *Config) { c.Wait = -1 }, "grace": func(c *Config) { c.Grace = -1 }, "waiting": func(c *Config) { c.MaxWaiting = -1 },
	} {
		cfg := good
		change(&cfg)
		_, err := New(cfg)
		require.ErrorIs(t, err, eldest.ErrInvalid, name)
	}
	_, follower, _ := pair(t, hello, func(c *Config) { c.Transport = (*http.Transport)(nil) })
	require.Equal(t, "hello", follower.get().body, "no transport is the Front's own")
	n := newNode(t, "n")
	require.ErrorIs(t, n.Lead(context.Background(), nil, http.NotFoundHandler()), eldest.ErrInvalid)
	require.ErrorIs(t, n.Run(nil), eldest.ErrInvalid) //nolint:staticcheck // what a caller may do
	n.leads(7, hello)
	second := &tenure{Calls: routing.NewCalls(context.Background(), routing.Never), Token: 8}
	require.ErrorIs(t, n.lead(context.Background(), second), eldest.ErrInvalid)
	require.Equal(t, "hello", n.get().body)
}

// A caller that waits for 100 Continue before it sends a body (Expect: 100-continue) receives it
// from the leader's handler. If its large upload is refused, it receives the reason. A refusal does
// not wait for a caller that sends its body slowly, or never.
func TestUploadsThatAreRefused(t *testing.T) {
	leader, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n, err)
	})
	const size = 8 << 20
	upload := func() reply {
		t.Helper()
		return follower.send(http.MethodPost, "/", io.LimitReader(zeros{}, size), "Expect", "100-continue")
	}
	follower.server.Client().Transport.(*http.Transport).ExpectContinueTimeout = soon
	require.Equal(t, fmt.Sprint(int64(size), nil), upload().body)
	follower.follows(leader, 6)
	upload().refused(t, http.StatusServiceUnavailable, "token 7 instead of 6")
	for n, header := range map[*node][]string{follower: nil, leader: {hopHeader, "6"}} {
		ctx, over := context.WithCancel(etcdtest.Context(t))
		out, err := n.do(ctx, http.MethodPost, "/", endless{ctx}, header...)
		require.NoError(t, err)
		out.refused(t, http.StatusServiceUnavailable, "token 7 instead of 6")
		over()
	}
	require.EqualValues(t, 1, leader.calls.Load())
}

// An answer that is given before the request's body was read does not affect the caller's next
// request on the connection.
func TestAnswersBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	leader, follower, _ := pair(t, hello)
	stranger := newNode(t, "stranger")
	stranger.follows(leader, 6)
	for range 300 {
		for n, code := range map[*node]int{leader: 200, follower: 200, stranger: 503} {
			for _, body := range []io.Reader{strings.NewReader("some"), io.MultiReader(strings.NewReader("of unknown length")), nil} {
				require.Equal(t, code, n.send(http.MethodPost, "/", body).StatusCode)
			}
		}
	}
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// slowContext takes its time for the values of a trace, which a request needs before it is sent.
type slowContext struct {
	context.Context
	before func()
}

func (c slowContext) Value(key any) any {
	c.before()
	return c.Context.Value(key)
}

// A request whose time ends before it was given to the transport has not been sent.
//
// Fails if only a connection that was asked for and not made is certain.
func TestLateBeforeTheTransport(t *testing.T) {
	_, follower, _ := pair(t, hello)
	ctx := slowContext{etcdtest.Context(t), func() {
		follower.router.Now().Peer.Cancel(errEnough)
		time.Sleep(10 * time.Millisecond)
	}}
	follower.cfg.Wait = 0
	r := httptest.NewRequest(http.MethodPost, "/", nil).WithContext(ctx)
	w := httptest.NewRecorder()
	follower.ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
}
