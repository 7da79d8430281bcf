package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Leader and follower answer alike: what is sent arrives, and comes back, as it was sent.
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
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodPut} {
		for _, body := range []string{"", "something"} {
			var direct seen
			for _, n := range []*node{leader, follower} {
				var in io.Reader
				if body != "" {
					in = strings.NewReader(body)
				}
				out, err := n.do(etcdtest.Context(t), method, "/a%2Fb//c?q=1;2&r=%zz&s", in,
					"Idempotency-Key", "k", "X-Own", "one", "X-Own", "two", "Forwarded", "for=x", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "gopher",
					"Eldest-From", "nobody", "Eldest-Token", "fence")
				require.NoError(t, err)
				require.NoError(t, out.err)
				require.Equal(t, http.StatusTeapot, out.StatusCode)
				require.Equal(t, "short and stout", out.body)
				require.Equal(t, "42", out.Header.Get("X-Answer"))
				require.Equal(t, "7", out.Trailer.Get("Sum"))
				if n == leader {
					direct = saw
					require.NotContains(t, direct.header, fromHeader)
					require.Equal(t, "fence", direct.header.Get("Eldest-Token"))
					continue
				}
				require.Equal(t, "1.2.3.4, 127.0.0.1", saw.header.Get("X-Forwarded-For"))
				require.Equal(t, strings.TrimPrefix(n.server.URL, "http://"), saw.header.Get("X-Forwarded-Host"))
				require.Equal(t, strings.TrimPrefix(n.server.URL, "http://"), saw.host)
				for _, s := range []*seen{&direct, &saw} {
					s.host = ""
					s.header.Del("X-Forwarded-For")
					s.header.Del("X-Forwarded-Host")
					s.header.Del("Content-Length") // of an empty POST: 0, or none
				}
				require.Equal(t, direct, saw, "%s %q", method, body)
			}
		}
	}
}

// Trailers of requests pass, too, whose values are known only after the body.
func TestForwardedTrailers(t *testing.T) {
	var saw http.Header
	_, follower, _ := pair(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		saw = r.Trailer.Clone()
	})
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
	require.Equal(t, "4", saw.Get("Sum"))
}

// A body larger than any buffer, slowly up and back again at the same time, through a
// follower; it takes longer than Config.Wait, which bounds waiting and connecting only.
func TestSlowUploadThroughAFollower(t *testing.T) {
	t.Parallel()
	_, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(w, r.Body)
	}, func(cfg *Config) { cfg.Wait = time.Second })
	const pieces, size = 24, 1 << 20
	pr, pw := io.Pipe()
	r, err := http.NewRequestWithContext(etcdtest.Context(t), http.MethodPost, follower.server.URL, pr)
	require.NoError(t, err)
	out, err := follower.server.Client().Do(r) // the answer begins before the request has ended
	require.NoError(t, err)
	defer func() { _ = out.Body.Close() }()
	sent, received := sha256.New(), sha256.New()
	go func() {
		for i := range pieces {
			piece := bytes.Repeat([]byte{byte(i)}, size)
			_, _ = sent.Write(piece)
			_, _ = pw.Write(piece)
			time.Sleep(60 * time.Millisecond)
		}
		_ = pw.Close()
	}()
	n, err := io.Copy(received, out.Body)
	require.NoError(t, err)
	require.EqualValues(t, pieces*size, n)
	require.Equal(t, sent.Sum(nil), received.Sum(nil))
}

// An answer that is streamed arrives as it is written, and ends at the leader when the caller
// hangs up.
func TestStreamThroughAFollower(t *testing.T) {
	next, ended := make(chan string), make(chan error, 1)
	_, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000") // also then
		for {
			select {
			case s := <-next:
				_, _ = io.WriteString(w, s)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				ended <- context.Cause(r.Context())
				return
			}
		}
	})
	ctx, hangUp := context.WithCancel(etcdtest.Context(t))
	defer hangUp()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, follower.server.URL, nil)
	require.NoError(t, err)
	go func() { next <- "0123" }()
	out, err := follower.server.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = out.Body.Close() }()
	for i := range 5 {
		if i > 0 {
			next <- "0123"
		}
		piece := make([]byte, 4)
		_, err = io.ReadFull(out.Body, piece)
		require.NoError(t, err)
		require.Equal(t, "0123", string(piece))
	}
	hangUp()
	require.ErrorIs(t, etcdtest.Take(t, ended, "the end of the handler"), context.Canceled)
}

// upgrade is a handler that switches to a protocol in which lines are echoed until the
// context of the request ends.
func upgrade(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer context.AfterFunc(r.Context(), func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_ = rw.Flush()
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = rw.WriteString(line)
		_ = rw.Flush()
	}
}

// switched asks for the echo protocol.
func (n *node) switched() io.ReadWriteCloser {
	n.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, n.server.URL, nil)
	require.NoError(n.t, err)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	out, err := n.server.Client().Do(r) //nolint:bodyclose // it is what is returned
	require.NoError(n.t, err)
	require.Equal(n.t, http.StatusSwitchingProtocols, out.StatusCode)
	return out.Body.(io.ReadWriteCloser)
}

func echoed(t testing.TB, conn io.ReadWriter, line string) {
	t.Helper()
	_, err := io.WriteString(conn, line+"\n")
	require.NoError(t, err)
	got := make([]byte, len(line)+1)
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, line+"\n", string(got))
}

// An upgraded connection passes through a follower, and ends with the tenure.
func TestUpgrade(t *testing.T) {
	leader, follower, r := pair(t, upgrade)
	for _, n := range []*node{leader, follower} {
		conn := n.switched()
		defer func() { _ = conn.Close() }()
		echoed(t, conn, "one")
		echoed(t, conn, strings.Repeat("two", 100_000))
		defer func() {
			_, err := conn.Read(make([]byte, 1))
			require.Error(t, err)
		}()
	}
	r.loses(eldest.ErrDeposed)
	require.ErrorIs(t, r.over(), eldest.ErrDeposed)
}

// Two nodes that take each other for the leader end a request after one hop.
func TestOneHopOnly(t *testing.T) {
	t.Parallel()
	a, b := newNode(t, "a"), newNode(t, "b")
	var arrived atomic.Int64
	for _, n := range []*node{a, b} {
		n.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if arrived.Add(1) > 20 { // or it would go round until no files are left
				http.Error(w, "it goes round", http.StatusLoopDetected)
				return
			}
			n.ServeHTTP(w, r)
		})
	}
	a.follows(b, 7)
	b.follows(a, 7)
	for _, n := range []*node{a, b} {
		reason := n.get().refused(t, http.StatusServiceUnavailable)
		require.Contains(t, reason, "which follows node")
	}
	// One whose news is older waits a moment for its own tenure, and not for ever.
	b.follows(a, 5)
	require.Contains(t, a.get().refused(t, http.StatusServiceUnavailable), "which follows node")
	require.EqualValues(t, 6, arrived.Load(), "three requests, and a hop of each")
}

// A request is served in the tenure that it was forwarded for, or refused.
func TestForwardedForAnotherTenure(t *testing.T) {
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	leader.leads(7, hello)
	for _, token := range []eldest.Token{6, 8} {
		follower.follows(leader, token)
		require.Contains(t, follower.get().refused(t, http.StatusServiceUnavailable), fmt.Sprintf("token 7 instead of %d", token))
	}
	require.Zero(t, leader.calls.Load())
	follower.follows(leader, 7)
	require.Equal(t, "hello", follower.get().body)
}

// A request that was forwarded for a tenure which is won, and not set up yet, waits for it.
func TestForwardedBeforeTheTenureIsSetUp(t *testing.T) {
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	follower.follows(leader, 7)
	answer := async(t, func() (reply, error) { return follower.do(etcdtest.Context(t), http.MethodGet, "/", nil) })
	etcdtest.Eventually(t, func() bool { return leader.waiting.Load() == 1 }, "the request at the leader")
	leader.leads(7, hello)
	out, err := answer()
	require.NoError(t, err)
	require.Equal(t, "hello", out.body)
}

// A request waits for a leader: for one that is known, and one that can be reached.
func TestWaitsForALeader(t *testing.T) {
	t.Parallel()
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close()) // nobody listens there now
	body := strings.Repeat("0123456789", 100_000)
	answer := async(t, func() (reply, error) {
		return follower.do(etcdtest.Context(t), http.MethodPost, "/", strings.NewReader(body))
	})
	etcdtest.Eventually(t, func() bool { return follower.waiting.Load() == 1 }, "the wait for a leader")
	follower.followsAt("dead", "http://"+listener.Addr().String(), 5)
	time.Sleep(100 * time.Millisecond) // attempts to connect; not asserted
	leader.leads(7, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	follower.follows(leader, 7)
	out, err := answer()
	require.NoError(t, err)
	require.Equal(t, body, out.body)
	require.EqualValues(t, 1, leader.calls.Load())
	require.Zero(t, follower.waiting.Load())
}

// The wait is bounded, with the reason, by time, by number and by the end of Run.
func TestWaitsAreBounded(t *testing.T) {
	short := newNode(t, "n", func(cfg *Config) { cfg.Wait = 20 * time.Millisecond })
	require.Contains(t, short.get().refused(t, http.StatusServiceUnavailable), "no Run is going on")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	short.followsAt("dead", "http://"+listener.Addr().String(), 5)
	require.Contains(t, short.get().refused(t, http.StatusServiceUnavailable), "connection refused")

	n := newNode(t, "n", func(cfg *Config) { cfg.MaxWaiting = 2 })
	ctx, stop := context.WithCancelCause(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	var answers []func() (reply, error)
	for range 2 {
		answers = append(answers, async(t, func() (reply, error) { return n.do(etcdtest.Context(t), http.MethodGet, "/", nil) }))
	}
	etcdtest.Eventually(t, func() bool { return n.waiting.Load() == 2 }, "two that wait")
	require.Contains(t, n.get().refused(t, http.StatusServiceUnavailable), "more than 2 requests wait")
	cause := errors.New("enough")
	stop(cause)
	require.ErrorIs(t, etcdtest.Take(t, ran, "the end of Run"), cause)
	for _, answer := range answers {
		out, err := answer()
		require.NoError(t, err)
		require.Contains(t, out.refused(t, http.StatusServiceUnavailable), "is stopping")
	}
	require.Contains(t, n.get().refused(t, http.StatusServiceUnavailable), "is stopping")
	require.ErrorIs(t, n.Run(context.Background()), eldest.ErrClosed)
}

// A caller that hangs up waits no more.
func TestCallerGivesUpWaiting(t *testing.T) {
	n := newNode(t, "n")
	ctx, hangUp := context.WithCancel(context.Background())
	answer := async(t, func() (reply, error) { return n.do(ctx, http.MethodGet, "/", nil) })
	etcdtest.Eventually(t, func() bool { return n.waiting.Load() == 1 }, "the wait")
	hangUp()
	_, err := answer()
	require.ErrorIs(t, err, context.Canceled)
	etcdtest.Eventually(t, func() bool { return n.waiting.Load() == 0 }, "the end of the wait")
}

func TestInvalid(t *testing.T) {
	e, err := elector.New(elector.Config{Election: "test", NodeID: "n", Source: elector.Always(elector.Clients{})})
	require.NoError(t, err)
	good := Config{Node: e, Election: "test", NodeID: "n"}
	for name, change := range map[string]func(*Config){
		"no node": func(c *Config) { c.Node = nil }, "no election": func(c *Config) { c.Election = "" }, "no id": func(c *Config) { c.NodeID = "" },
		"wait": func(c *Config) { c.Wait = -1 }, "grace": func(c *Config) { c.Grace = -1 }, "waiting": func(c *Config) { c.MaxWaiting = -1 },
	} {
		cfg := good
		change(&cfg)
		_, err := New(cfg)
		require.ErrorIs(t, err, eldest.ErrInvalid, name)
	}
	f, err := New(good)
	require.NoError(t, err)
	require.ErrorIs(t, f.Lead(context.Background(), nil, http.NotFoundHandler()), eldest.ErrInvalid)
	require.ErrorIs(t, f.Run(nil), eldest.ErrInvalid) //nolint:staticcheck // what a caller may do

	n := newNode(t, "n")
	n.leads(7, hello)
	second := &tenure{flight: newFlight(context.Background(), func() error { return nil }), token: 8}
	require.ErrorIs(t, n.lead(context.Background(), second), eldest.ErrInvalid)
	require.Equal(t, "hello", n.get().body)
}

// A caller that asks before it sends a body (Expect: 100-continue) is told to go on by the
// leader's handler, and one whose large upload is refused is told why.
func TestUploadsThatAreRefused(t *testing.T) {
	leader, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n, err)
	})
	const size = 8 << 20
	upload := func() reply {
		t.Helper()
		out, err := follower.do(etcdtest.Context(t), http.MethodPost, "/", io.LimitReader(zeros{}, size), "Expect", "100-continue")
		require.NoError(t, err)
		return out
	}
	follower.server.Client().Transport.(*http.Transport).ExpectContinueTimeout = soon
	require.Equal(t, fmt.Sprint(int64(size), nil), upload().body)
	follower.follows(leader, 6)
	require.Contains(t, upload().refused(t, http.StatusServiceUnavailable), "token 7 instead of 6")
	require.EqualValues(t, 1, leader.calls.Load())
}

// A refusal does not wait for a caller that sends its body slowly, or never.
func TestRefusedBeforeTheBodyHasArrived(t *testing.T) {
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	leader.leads(7, hello)
	follower.follows(leader, 6)
	for _, n := range []*node{leader, follower} {
		ctx, over := context.WithCancel(etcdtest.Context(t))
		var header []string
		if n == leader {
			header = []string{hopHeader, "6"}
		}
		out, err := n.do(ctx, http.MethodPost, "/", endless{ctx}, header...)
		require.NoError(t, err)
		require.Contains(t, out.refused(t, http.StatusServiceUnavailable), "token 7 instead of 6")
		over()
	}
}

// An answer that is given before the request's body was read does no harm to the caller's
// next request on the connection.
func TestAnswersBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	leader, follower, _ := pair(t, hello)
	stranger := newNode(t, "stranger")
	stranger.follows(leader, 6)
	for range 300 {
		for n, code := range map[*node]int{leader: 200, follower: 200, stranger: 503} {
			for _, body := range []io.Reader{strings.NewReader("some"), io.MultiReader(strings.NewReader("of unknown length")), nil} {
				out, err := n.do(etcdtest.Context(t), http.MethodPost, "/", body)
				require.NoError(t, err, "%s, %T", n.id, body)
				require.Equal(t, code, out.StatusCode)
			}
		}
	}
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
