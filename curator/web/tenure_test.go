package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Handlers' contexts end with the tenure, and requests that come later wait for the next
// one. A handler that says nothing then is answered for: it has not said 200.
func TestEndOfATenure(t *testing.T) {
	var begun atomic.Int64
	leader, follower, r := pair(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			_, _ = io.WriteString(w, "the first half")
			w.(http.Flusher).Flush()
		}
		begun.Add(1)
		<-r.Context().Done()
		if r.URL.Path == "/says" {
			_, _ = io.WriteString(w, context.Cause(r.Context()).Error())
		}
	})
	answers := make(map[string][]func() (reply, error))
	for _, path := range []string{"/", "/says", "/stream"} {
		for _, n := range []*node{leader, follower} {
			answers[path] = append(answers[path], async(t, func() (reply, error) { return n.do(etcdtest.Context(t), http.MethodGet, path, nil) }))
		}
	}
	etcdtest.Eventually(t, func() bool { return begun.Load() == 6 }, "the handlers")
	r.loses(eldest.ErrDeposed)
	require.ErrorIs(t, r.over(), eldest.ErrDeposed)
	for _, answer := range answers["/"] {
		out, err := answer()
		require.NoError(t, err)
		require.Contains(t, out.refused(t, http.StatusBadGateway), "leads no more")
	}
	for _, answer := range answers["/says"] {
		out, err := answer()
		require.NoError(t, err)
		require.Contains(t, out.body, "deposed", "a handler's own answer passes")
	}
	for _, answer := range answers["/stream"] {
		out, err := answer()
		require.NoError(t, err)
		require.Error(t, out.err, "half an answer does not look whole")
	}
	answer := async(t, func() (reply, error) { return leader.do(etcdtest.Context(t), http.MethodGet, "/", nil) })
	etcdtest.Eventually(t, func() bool { return leader.waiting.Load() == 1 }, "the wait for the next tenure")
	leader.leads(9, hello)
	out, err := answer()
	require.NoError(t, err)
	require.Equal(t, "hello", out.body)
}

// A tenure that is given up on purpose lasts until the requests that run have ended.
func TestTenureGivenUp(t *testing.T) {
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	leader, follower, r := pair(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-finish:
		case <-r.Context().Done():
		}
		_, _ = fmt.Fprint(w, r.Context().Err())
	}, func(cfg *Config) { cfg.Grace = soon })
	var answers []func() (reply, error)
	for _, n := range []*node{leader, follower} {
		answers = append(answers, async(t, func() (reply, error) { return n.do(etcdtest.Context(t), http.MethodGet, "/", nil) }))
	}
	etcdtest.Take(t, begun, "a handler")
	etcdtest.Take(t, begun, "another one")
	cause := errors.New("enough")
	r.resign(cause)
	leader.routed(func(to *route) bool { return to.tenure == nil })
	require.Contains(t, follower.get().refused(t, http.StatusServiceUnavailable), "which does not lead with token 7")
	close(finish)
	for _, answer := range answers {
		out, err := answer()
		require.NoError(t, err)
		require.Equal(t, "<nil>", out.body)
	}
	require.ErrorIs(t, r.over(), cause)
}

// A handler that sits in a read of its caller's, or in a write to it, does not hold up the
// end of a tenure.
func TestHandlerThatIsStuckWithItsCaller(t *testing.T) {
	begun := make(chan struct{}, 2)
	leader, _, r := pair(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		for piece := make([]byte, 1<<20); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	ctx, over := context.WithCancel(etcdtest.Context(t))
	defer over()
	stuck := async(t, func() (reply, error) { return leader.do(ctx, http.MethodPost, "/", endless{ctx}) })
	conn, err := net.Dial("tcp", leader.server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // and nothing is read
	require.NoError(t, err)
	etcdtest.Take(t, begun, "a handler")
	etcdtest.Take(t, begun, "another one")
	r.loses(eldest.ErrSessionLost)
	require.ErrorIs(t, r.over(), eldest.ErrSessionLost)
	over()
	_, _ = stuck()
}

// A panic of a handler's is the server's to deal with, and ends the request.
func TestPanicOfAHandler(t *testing.T) {
	leader, follower, r := pair(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := leader.do(etcdtest.Context(t), http.MethodPost, "/", nil)
	require.Error(t, err)
	out, err := follower.do(etcdtest.Context(t), http.MethodPost, "/", nil)
	require.NoError(t, err)
	out.refused(t, http.StatusBadGateway)
	r.resign(nil)
	require.ErrorIs(t, r.over(), context.Canceled)
}

// A handler that meets the end of its tenure says whether it has changed anything.
func TestRefuse(t *testing.T) {
	var leader *node
	leader, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		leader.Refuse(w, eldest.ErrDeposed, r.URL.Path == "/nothing")
	})
	out, err := follower.do(etcdtest.Context(t), http.MethodGet, "/nothing", nil)
	require.NoError(t, err)
	require.Contains(t, out.refused(t, http.StatusServiceUnavailable), "deposed")
	require.Contains(t, follower.get().refused(t, http.StatusBadGateway), "deposed")
}
