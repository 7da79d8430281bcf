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

// dying is a leader that answers "/first" of each connection and carries out the request after it.
// Then it crashes: the connection is closed without an answer, in an orderly way or with a reset.
type dying struct {
	address  string
	reset    bool
	requests atomic.Int64 // that were carried out and have no answer
}

func newDying(t testing.TB, reset bool) *dying {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &dying{address: listener.Addr().String(), reset: reset}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { d.serve(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
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
		again(r, []byte("body"))
		r.Header.Set("X-Idempotency-Key", "1")
	},
}

// again gives a request a body that can be made again.
func again(r *http.Request, body []byte) {
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
}

// What was sent to a leader before it crashed is never sent again, although net/http's Transport
// alone would send it again.
func TestNothingIsSentTwice(t *testing.T) {
	// send makes two requests over one connection. change is applied to the second.
	send := func(client http.RoundTripper, base string, change func(*http.Request)) (codes [2]int) {
		for i, path := range []string{"/first", "/second"} {
			to, err := url.Parse(base + path)
			require.NoError(t, err)
			r := (&http.Request{Method: http.MethodGet, URL: to, Header: make(http.Header)}).WithContext(etcdtest.Context(t))
			if i == 1 {
				change(r)
			}
			if out, err := client.RoundTrip(r); err == nil {
				codes[i] = out.StatusCode
				require.NoError(t, out.Body.Close())
			}
		}
		return codes
	}
	for name, change := range repeated {
		for _, reset := range []bool{false, true} {
			leader, follower := newDying(t, reset), newNode(t, "follower")
			// A middleware in front of the Front may do this to requests.
			follower.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength > 0 {
					body, _ := io.ReadAll(r.Body)
					again(r, body)
				}
				follower.ServeHTTP(w, r)
			})
			follower.followsAt("leader", leader.address, 7)
			require.Equal(t, [2]int{http.StatusOK, http.StatusBadGateway}, send(follower.server.Client().Transport, follower.server.URL, change), name)
			require.EqualValues(t, 1, leader.requests.Load(), "%s was sent more than once", name)
		}
		leader, transport := newDying(t, false), newTransport()
		send(transport, "http://"+leader.address, change)
		transport.CloseIdleConnections()
		require.EqualValues(t, 2, leader.requests.Load(), "%s: the test above proves nothing", name)
	}
}

// A transport that does not report whether it had a connection may have sent the request.
func TestTransportWithoutTraces(t *testing.T) {
	var sent atomic.Int64
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			sent.Add(1)
			return nil, io.ErrUnexpectedEOF
		})
	})
	follower.followsAt("leader", "127.0.0.1:1", 7)
	follower.get().refused(t, http.StatusBadGateway, "")
	require.EqualValues(t, 1, sent.Load())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// If a leader crashes in the middle of a request, a handler has been called once, and the caller
// receives that the request may have been carried out, or half an answer. The same holds for a
// leader that does not respond any more, when another one is known.
func TestLeaderDiesInTheMiddle(t *testing.T) {
	begun := make(chan struct{}, 1)
	ctx, end := context.WithCancel(context.Background())
	defer end()
	var calls sync.Map
	leader, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		if _, again := calls.LoadOrStore(r.URL.Path, true); again {
			_, _ = io.WriteString(w, "sent a second time")
			return
		}
		if r.URL.Path == "/half" {
			says(w, "half")
		}
		begun <- struct{}{}
		select {
		case <-ctx.Done():
		case <-r.Context().Done():
		}
	})
	successor := newNode(t, "successor")
	successor.leads(9, hello)
	for i, path := range []string{"/", "/half", "/silent"} {
		answer := follower.ask(path)
		etcdtest.Take(t, begun, "the handler")
		if path == "/silent" {
			follower.router.Unknown(eldest.ErrUnavailable) // this alone ends nothing
			follower.follows(leader, 7)
			follower.follows(successor, 9)
		} else {
			leader.server.CloseClientConnections()
		}
		switch out := answer(); path {
		case "/half":
			require.Error(t, out.err)
		case "/silent":
			out.refused(t, http.StatusBadGateway, "another tenure is known")
		default:
			out.refused(t, http.StatusBadGateway, "")
		}
		require.EqualValues(t, i+1, leader.calls.Load())
	}
	require.Zero(t, successor.calls.Load())
	require.Equal(t, "hello", follower.get().body)
}
