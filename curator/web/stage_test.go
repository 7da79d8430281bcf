package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// soon is when what a test waits for must have happened on the slowest machine.
const soon = 30 * time.Second

// node is a Front behind a real server. The test sets its route by hand: it stands in no election.
type node struct {
	*Front
	t      testing.TB
	id     string
	server *httptest.Server
	calls  atomic.Int64 // of handlers
}

func newNode(t testing.TB, id string, change ...func(*Config)) *node {
	t.Helper()
	n := newQuietNode(t, id, change...)
	n.server.Start()
	return n
}

// newQuietNode makes a node whose server is not started yet.
func newQuietNode(t testing.TB, id string, change ...func(*Config)) *node {
	t.Helper()
	e, err := elector.New(elector.Config{Election: "test", NodeID: id, Source: elector.Always(elector.Clients{})})
	require.NoError(t, err)
	cfg := Config{Node: e, Election: "test", NodeID: id, Wait: soon, Grace: 50 * time.Millisecond}
	for _, f := range change {
		f(&cfg)
	}
	n := &node{t: t, id: id}
	n.Front, err = New(cfg)
	require.NoError(t, err)
	n.server = httptest.NewUnstartedServer(n.Front)
	n.server.Config.ErrorLog = log.New(noPanics{t}, "", 0)
	t.Cleanup(func() {
		n.router.stop(errors.New("the test is over"))
		n.server.CloseClientConnections()
		n.server.Close()
		if n.own != nil {
			n.own.CloseIdleConnections()
		}
	})
	return n
}

// reign is a tenure of a node's.
type reign struct {
	t      testing.TB
	tenure *tenure
	resign context.CancelCauseFunc // as the end of the lead function's context
	done   chan error
}

// leads has the node serve in a tenure. The handler's calls are counted.
func (n *node) leads(token eldest.Token, h http.HandlerFunc) *reign {
	n.t.Helper()
	ctx, resign := context.WithCancelCause(context.Background())
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.calls.Add(1)
		h(w, r)
	})
	r := &reign{t: n.t, resign: resign, done: make(chan error, 1), tenure: &tenure{
		flight: newFlight(context.Background(), func() error { return nil }), token: token, handler: counted,
	}}
	go func() { r.done <- n.lead(ctx, r.tenure) }()
	n.routed(func(to *route) bool { return to.tenure == r.tenure })
	n.t.Cleanup(func() { resign(nil); _ = r.over() })
	return r
}

// loses ends the tenure as etcd or the deadline does.
func (r *reign) loses(cause error) { r.tenure.cancel(cause) }

// over waits for the end of Lead.
func (r *reign) over() error {
	r.t.Helper()
	err := etcdtest.Take(r.t, r.done, "the end of Lead")
	r.done <- err
	return err
}

func (n *node) routed(want func(*route) bool) {
	n.t.Helper()
	_, err := n.router.Reader().NextWhere(etcdtest.Context(n.t), want)
	require.NoError(n.t, err)
}

// follows has the node forward to another one.
func (n *node) follows(leader *node, token eldest.Token) {
	n.t.Helper()
	n.followsAt(leader.id, leader.server.URL, token)
}

func (n *node) followsAt(id, at string, token eldest.Token) {
	n.t.Helper()
	to, err := url.Parse(at)
	require.NoError(n.t, err)
	var l elector.Leader
	l.NodeID, l.Address, l.Token = id, to.Host, token
	n.router.follow(l, to)
}

// pair is a leader and a follower.
func pair(t testing.TB, h http.HandlerFunc, change ...func(*Config)) (leader, follower *node, r *reign) {
	t.Helper()
	leader, follower = newNode(t, "leader", change...), newNode(t, "follower", change...)
	r = leader.leads(7, h)
	follower.follows(leader, 7)
	return leader, follower, r
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// reply is an answer that was read to its end.
type reply struct {
	*http.Response
	body string
	err  error // of the body
}

// do sends a request to the node.
func (n *node) do(ctx context.Context, method, path string, body io.Reader, header ...string) (reply, error) {
	n.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, n.server.URL+path, body)
	require.NoError(n.t, err)
	for ; len(header) >= 2; header = header[2:] {
		r.Header.Add(header[0], header[1])
	}
	response, err := n.server.Client().Do(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	return reply{response, string(all), err}, nil
}

// get is do for a request that is answered.
func (n *node) get(header ...string) reply {
	n.t.Helper()
	out, err := n.do(etcdtest.Context(n.t), http.MethodGet, "/", nil, header...)
	require.NoError(n.t, err)
	require.NoError(n.t, out.err)
	return out
}

// refused asserts the answer of a node in the place of the service's and returns its reason.
func (out reply) refused(t testing.TB, code int) string {
	t.Helper()
	require.Equal(t, code, out.StatusCode, out.body)
	require.Equal(t, "application/json", out.Header.Get("Content-Type"))
	require.Equal(t, code == http.StatusServiceUnavailable, out.Header.Get("Retry-After") != "")
	var says refusal
	require.NoError(t, json.Unmarshal([]byte(out.body), &says), out.body)
	require.Equal(t, "test", says.Election)
	require.Equal(t, code != http.StatusBadGateway, says.NothingApplied, out.body)
	return says.Reason
}

// async runs a request beside the test.
func async(t testing.TB, f func() (reply, error)) func() (reply, error) {
	t.Helper()
	var out reply
	var err error
	var running sync.WaitGroup
	running.Go(func() { out, err = f() })
	t.Cleanup(running.Wait)
	return func() (reply, error) {
		done := make(chan struct{})
		go func() { defer close(done); running.Wait() }()
		etcdtest.Take(t, done, "the answer")
		return out, err
	}
}

// endless is a body that never ends by itself.
type endless struct{ ctx context.Context }

func (e endless) Read(p []byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

// noPanics is a server's log in which there must be none.
type noPanics struct{ t testing.TB }

func (l noPanics) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("panic")) {
		l.t.Errorf("%s", line)
	}
	return len(line), nil
}
