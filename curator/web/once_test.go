package web

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// dying is a leader that answers "/first" of each connection and carries out the request after
// it; then it dies: the connection is closed without an answer, orderly or with a reset.
type dying struct {
	listener net.Listener
	reset    bool
	requests atomic.Int64 // that were carried out and have no answer
	crew     sync.WaitGroup
}

func newDying(t testing.TB, reset bool) *dying {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &dying{listener: listener, reset: reset}
	d.crew.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.crew.Go(func() { d.serve(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		d.crew.Wait()
	})
	return d
}

func (d *dying) serve(conn *net.TCPConn) {
	defer func() { _ = conn.Close() }()
	for in := bufio.NewReader(conn); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path != "/first" {
			d.requests.Add(1)
			if d.reset {
				_ = conn.SetLinger(0)
			}
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}

func (d *dying) url() string { return "http://" + d.listener.Addr().String() }

// repeated are requests that net/http's Transport sends again when a reused connection breaks.
var repeated = map[string]func(r *http.Request){
	"GET":     func(*http.Request) {},
	"OPTIONS": func(r *http.Request) { r.Method = http.MethodOptions },
	"HEAD":    func(r *http.Request) { r.Method = http.MethodHead },
	"TRACE":   func(r *http.Request) { r.Method = http.MethodTrace },
	"POST with an Idempotency-Key": func(r *http.Request) {
		r.Method = http.MethodPost
		r.Header.Set("Idempotency-Key", "1")
	},
	"PUT with a body, and an X-Idempotency-Key": func(r *http.Request) {
		r.Method, r.ContentLength = http.MethodPut, 4
		r.Body, r.GetBody = io.NopCloser(bytes.NewReader([]byte("body"))), func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte("body"))), nil
		}
		r.Header.Set("X-Idempotency-Key", "1")
	},
}

// What a leader has been sent before it died is never sent a second time, also where
// net/http's Transport would.
func TestNothingIsSentTwice(t *testing.T) {
	for name, change := range repeated {
		for _, reset := range []bool{false, true} {
			leader := newDying(t, reset)
			follower := newNode(t, "follower")
			// What a middleware in front of the Front may do to requests.
			follower.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/first" && r.ContentLength > 0 {
					body, _ := io.ReadAll(r.Body)
					r.Body, r.GetBody = io.NopCloser(bytes.NewReader(body)), func() (io.ReadCloser, error) {
						return io.NopCloser(bytes.NewReader(body)), nil
					}
				}
				follower.ServeHTTP(w, r)
			})
			follower.followsAt("leader", leader.url(), 7)
			send := func(path string, change func(*http.Request)) int {
				r, err := http.NewRequestWithContext(etcdtest.Context(t), http.MethodGet, follower.server.URL+path, nil)
				require.NoError(t, err)
				change(r)
				out, err := follower.server.Client().Do(r)
				require.NoError(t, err)
				require.NoError(t, out.Body.Close())
				return out.StatusCode
			}
			require.Equal(t, http.StatusOK, send("/first", func(*http.Request) {}))
			require.Equal(t, http.StatusBadGateway, send("/second", change), name)
			require.EqualValues(t, 1, leader.requests.Load(), "%s was sent more than once", name)
		}
	}
}

// The test above means something: the transport alone does send these again.
func TestTransportAloneSendsTwice(t *testing.T) {
	for name, change := range repeated {
		leader := newDying(t, false)
		transport := newTransport()
		for _, path := range []string{"/first", "/second"} {
			to, err := url.Parse(leader.url() + path)
			require.NoError(t, err)
			r := (&http.Request{Method: http.MethodGet, URL: to, Header: make(http.Header)}).WithContext(etcdtest.Context(t))
			if path == "/second" {
				change(r)
			}
			out, err := transport.RoundTrip(r)
			if err == nil {
				require.NoError(t, out.Body.Close())
			}
		}
		transport.CloseIdleConnections()
		require.EqualValues(t, 2, leader.requests.Load(), name)
	}
}

// A transport that does not say whether it had a connection may have sent anything.
func TestTransportWithoutTraces(t *testing.T) {
	var sent atomic.Int64
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			sent.Add(1)
			return nil, io.ErrUnexpectedEOF
		})
	})
	follower.followsAt("leader", "http://127.0.0.1:1", 7)
	follower.get().refused(t, http.StatusBadGateway)
	require.EqualValues(t, 1, sent.Load())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A leader that dies in the middle of a request leaves it at one call of a handler, and
// the caller is told that it may have been carried out, or has half an answer.
func TestLeaderDiesInTheMiddle(t *testing.T) {
	begun, over := make(chan struct{}, 1), make(chan struct{})
	var calls sync.Map
	leader, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		if _, again := calls.LoadOrStore(r.URL.Path, true); again {
			_, _ = io.WriteString(w, "sent a second time")
			return
		}
		if r.URL.Path == "/half" {
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
		}
		begun <- struct{}{}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	successor := newNode(t, "successor")
	successor.leads(9, hello)
	for i, path := range []string{"/", "/half"} {
		answer := async(t, func() (reply, error) { return follower.do(etcdtest.Context(t), http.MethodGet, path, nil) })
		etcdtest.Take(t, begun, "the handler")
		leader.server.CloseClientConnections()
		out, err := answer()
		require.NoError(t, err)
		if path == "/" {
			out.refused(t, http.StatusBadGateway)
		} else {
			require.Error(t, out.err)
		}
		require.EqualValues(t, i+1, leader.calls.Load())
	}
	close(over)
	require.Zero(t, successor.calls.Load())
	follower.follows(successor, 9)
	require.Equal(t, "hello", follower.get().body)
}

// A leader that says nothing any more is given up when another one is known: the request is
// broken off, and not sent to that one.
func TestSilentLeader(t *testing.T) {
	begun := make(chan struct{})
	leader, follower := newNode(t, "leader"), newNode(t, "follower")
	ctx, end := context.WithCancel(context.Background())
	defer end()
	leader.leads(7, func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-ctx.Done()
	})
	follower.follows(leader, 7)
	answer := async(t, func() (reply, error) { return follower.do(etcdtest.Context(t), http.MethodGet, "/", nil) })
	etcdtest.Take(t, begun, "the handler")
	follower.router.neither(eldest.ErrSilent) // that alone ends nothing
	follower.follows(leader, 7)
	successor := newNode(t, "successor")
	successor.leads(9, hello)
	follower.follows(successor, 9)
	out, err := answer()
	require.NoError(t, err)
	require.Contains(t, out.refused(t, http.StatusBadGateway), "another leader is known")
	require.Zero(t, successor.calls.Load())
	require.Equal(t, "hello", follower.get().body)
}
