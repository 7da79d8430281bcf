package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Handlers' contexts end with the tenure, and later requests wait for the next one. If a handler
// then returns without an answer, the node answers: 200 would be wrong.
func TestEndOfATenure(t *testing.T) {
	var begun atomic.Int64
	leader, follower, r := pair(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			says(w, "the first half")
		}
		begun.Add(1)
		<-r.Context().Done()
		if r.URL.Path == "/says" {
			_, _ = io.WriteString(w, context.Cause(r.Context()).Error())
		}
	})
	answers := make(map[string][]func() reply)
	for _, path := range []string{"/", "/says", "/stream"} {
		answers[path] = []func() reply{leader.ask(path), follower.ask(path)}
	}
	etcdtest.Eventually(t, func() bool { return begun.Load() == 6 }, "the handlers")
	r.loses(eldest.ErrDeposed)
	for i := range 2 {
		answers["/"][i]().refused(t, http.StatusBadGateway, "no longer leads")
		require.Contains(t, answers["/says"][i]().body, "deposed", "a handler's own answer passes")
		require.Error(t, answers["/stream"][i]().err, "half an answer does not look whole")
	}
	answer := leader.ask("/")
	leader.waits(1)
	leader.leads(9, hello)
	require.Equal(t, "hello", answer().body)
}

// A tenure that is given up voluntarily lasts until the running requests have ended.
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
	answers := []func() reply{leader.ask("/"), follower.ask("/")}
	etcdtest.Take(t, begun, "a handler")
	etcdtest.Take(t, begun, "another one")
	r.resign(errEnough)
	leader.routed(func(to *route) bool { return to.Tenure == nil })
	follower.get().refused(t, http.StatusServiceUnavailable, "which does not lead with token 7")
	close(finish)
	for _, answer := range answers {
		require.Equal(t, "<nil>", answer().body)
	}
	require.ErrorIs(t, r.over(), errEnough)
}

// A handler that is in a read from its caller, or in a write to it, does not delay the end of a
// tenure.
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
	answered := make(chan struct{})
	go func() { defer close(answered); _, _ = leader.do(ctx, http.MethodPost, "/", endless{ctx}) }()
	conn, err := net.Dial("tcp", leader.server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // and nothing is read
	require.NoError(t, err)
	etcdtest.Take(t, begun, "a handler")
	etcdtest.Take(t, begun, "another one")
	r.loses(eldest.ErrSessionLost)
	over()
	<-answered // it is answered, or its context has ended
}

// A panic of a handler is handled by the server, and ends the request.
func TestPanicOfAHandler(t *testing.T) {
	leader, follower, r := pair(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := leader.do(etcdtest.Context(t), http.MethodPost, "/", nil)
	require.Error(t, err)
	follower.send(http.MethodPost, "/", nil).refused(t, http.StatusBadGateway, "")
	r.resign(nil)
	require.ErrorIs(t, r.over(), context.Canceled)
}

// A handler that receives the end of its tenure reports whether it has changed anything.
func TestRefuse(t *testing.T) {
	var leader *node
	leader, follower, _ := pair(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		leader.Refuse(w, eldest.ErrDeposed, r.URL.Path == "/nothing")
	})
	follower.send(http.MethodGet, "/nothing", nil).refused(t, http.StatusServiceUnavailable, "deposed")
	follower.get().refused(t, http.StatusBadGateway, "deposed")
}

// An answer that was complete in the tenure is sent, also if the tenure ends before the handler
// returns: a refusal, and an answer that has no body.
//
// Fails if such an answer counts as one of unknown length.
func TestAnswerThatIsCompleteInTheTenure(t *testing.T) {
	for _, path := range []string{"/refused", "/204", "/304", "/head"} {
		begin := make(chan struct{})
		var leader, follower *node
		var r *servedTenure
		leader, follower, r = pair(t, func(w http.ResponseWriter, _ *http.Request) {
			<-begin
			switch path {
			case "/refused":
				leader.Refuse(w, eldest.ErrDeposed, true)
			case "/204":
				w.WriteHeader(http.StatusNoContent)
			case "/304":
				w.WriteHeader(http.StatusNotModified)
			case "/head":
				w.WriteHeader(http.StatusOK)
			}
			r.Cancel(eldest.ErrDeposed)
		})
		close(begin)
		method := map[bool]string{true: http.MethodHead, false: http.MethodPost}[path == "/head"]
		out := follower.send(method, path, nil)
		require.NoError(t, out.err)
		switch path {
		case "/refused":
			out.refused(t, http.StatusServiceUnavailable, "deposed")
		case "/head":
			require.Equal(t, http.StatusOK, out.StatusCode)
		default:
			require.Equal(t, path, "/"+strconv.Itoa(out.StatusCode), out.body)
		}
	}
}

// An answer whose length was unknown when it was begun is aborted at the end of the tenure, whatever the
// handler does with its header after that: here it calls Refuse too late.
//
// Fails if the length is read at the end of the answer.
func TestRefuseInTheMiddleOfAnAnswer(t *testing.T) {
	var leader, follower *node
	var r *servedTenure
	begin := make(chan struct{})
	leader, follower, r = pair(t, func(w http.ResponseWriter, _ *http.Request) {
		<-begin
		says(w, "part")
		r.Cancel(eldest.ErrDeposed)
		leader.Refuse(w, eldest.ErrDeposed, false)
	})
	close(begin)
	out := follower.send(http.MethodGet, "/", nil)
	require.Error(t, out.err, "%q looks like a whole answer", out.body)
}
