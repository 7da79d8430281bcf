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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// soon is the time limit for what a test waits for, on the slowest machine.
const soon = 30 * time.Second

// node is a Front in a real server. The test sets its route directly: it is in no election, unless
// it was made by run.
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
		n.router.Stop(errStopped)
		n.router.Disconnect(errStopped)
		n.endings.Wait()
		n.server.CloseClientConnections()
		n.server.Close()
		if n.own != nil {
			n.own.CloseIdleConnections()
		}
	})
	return n
}

// servedTenure is a tenure of a node.
type servedTenure struct {
	*tenure
	t      testing.TB
	resign context.CancelCauseFunc // ends the context of the lead function
	done   chan error
}

// leads makes the node serve in a tenure. The handler's calls are counted.
func (n *node) leads(token eldest.Token, h http.HandlerFunc) *servedTenure {
	n.t.Helper()
	ctx, resign := context.WithCancelCause(context.Background())
	r := &servedTenure{t: n.t, resign: resign, done: make(chan error, 1), tenure: &tenure{
		Calls: routing.NewCalls(context.Background(), routing.Never), Token: token, Service: n.counted(h),
	}}
	go func() { r.done <- n.lead(ctx, r.tenure) }()
	n.routed(func(to *route) bool { return to.Tenure == r.tenure })
	n.t.Cleanup(func() { resign(nil); _ = r.over() })
	return r
}

func (n *node) counted(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.calls.Add(1)
		h(w, r)
	})
}

// loses ends the tenure as etcd or the deadline does.
func (r *servedTenure) loses(cause error) {
	r.t.Helper()
	r.Cancel(cause)
	require.ErrorIs(r.t, r.over(), cause)
}

// over waits for the end of Lead.
func (r *servedTenure) over() error {
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

// waits blocks until the given number of requests wait.
func (n *node) waits(requests int64) {
	n.t.Helper()
	etcdtest.Eventually(n.t, func() bool { return n.waiting.Load() == requests }, "%d requests wait", requests)
}

// follows makes the node forward to leader.
func (n *node) follows(leader *node, token eldest.Token) {
	n.followsAt(leader.id, strings.TrimPrefix(strings.TrimPrefix(leader.server.URL, "https://"), "http://"), token)
}

func (n *node) followsAt(id, address string, token eldest.Token) {
	var l elector.Leader
	l.NodeID, l.Address, l.Token = id, address, token
	n.router.Follow(l)
}

// pair is a leader and a follower.
func pair(t testing.TB, h http.HandlerFunc, change ...func(*Config)) (leader, follower *node, r *servedTenure) {
	t.Helper()
	leader, follower = newNode(t, "leader", change...), newNode(t, "follower", change...)
	r = leader.leads(7, h)
	follower.follows(leader, 7)
	return leader, follower, r
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// says writes a part of an answer, and flushes it.
func says(w http.ResponseWriter, s string) {
	_, _ = io.WriteString(w, s)
	w.(http.Flusher).Flush()
}

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

// send is do for a request that is answered.
func (n *node) send(method, path string, body io.Reader, header ...string) reply {
	n.t.Helper()
	out, err := n.do(etcdtest.Context(n.t), method, path, body, header...)
	require.NoError(n.t, err)
	return out
}

// get is send for a request whose answer is complete.
func (n *node) get(header ...string) reply {
	n.t.Helper()
	out := n.send(http.MethodGet, "/", nil, header...)
	require.NoError(n.t, out.err)
	return out
}

// ask sends a GET in the background. The returned function waits for the answer.
func (n *node) ask(path string) func() reply {
	return n.askFor(func() (reply, error) { return n.do(etcdtest.Context(n.t), http.MethodGet, path, nil) })
}

func (n *node) askFor(send func() (reply, error)) func() reply {
	n.t.Helper()
	var out reply
	var err error
	var running sync.WaitGroup
	running.Go(func() { out, err = send() })
	n.t.Cleanup(running.Wait)
	return func() reply {
		n.t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); running.Wait() }()
		etcdtest.Take(n.t, done, "the answer")
		require.NoError(n.t, err)
		return out
	}
}

// refused asserts the answer of a node in the place of the service's, and a part of its reason.
func (out reply) refused(t testing.TB, code int, reason string) {
	t.Helper()
	require.Equal(t, code, out.StatusCode, out.body)
	require.Equal(t, "application/json", out.Header.Get("Content-Type"))
	require.Equal(t, code == http.StatusServiceUnavailable, out.Header.Get("Retry-After") != "")
	var says refusal
	require.NoError(t, json.Unmarshal([]byte(out.body), &says), out.body)
	require.Equal(t, "test", says.Election)
	require.Equal(t, code != http.StatusBadGateway, says.NothingApplied, out.body)
	require.Contains(t, says.Reason, reason)
}

// endless is a body that ends only with its context.
type endless struct{ ctx context.Context }

func (e endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

// noPanics is a server's log that fails the test if it has a panic.
type noPanics struct{ t testing.TB }

func (l noPanics) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("panic")) {
		l.t.Errorf("%s", line)
	}
	return len(line), nil
}

// member is a node of a service in a real election.
type member struct {
	*node
	elector *elector.Elector
	etcd    *clientv3.Client
	stop    context.CancelCauseFunc
	done    chan error
}

// run starts a member whose handler is made for each tenure, and stops it with the test.
func run(t testing.TB, election, id string, handler func(l *elector.Leadership) http.HandlerFunc) *member {
	t.Helper()
	m := &member{node: &node{t: t, id: id}, etcd: etcdtest.Shared(t).Client(t), done: make(chan error, 2)}
	m.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.ServeHTTP(w, r) }))
	m.server.Config.ErrorLog = log.New(noPanics{t}, "", 0)
	var err error
	m.elector, err = elector.New(elector.Config{
		Election: election, NodeID: id, Address: m.server.Listener.Addr().String(), Source: elector.Always(elector.Client(m.etcd)),
		Session: lease.Options{TTL: time.Minute}, // on a busy machine no node loses its lease
		Backoff: func(int) time.Duration { return 10 * time.Millisecond },
	})
	require.NoError(t, err)
	m.Front, err = New(Config{Node: m.elector, Election: election, NodeID: id, Wait: soon})
	require.NoError(t, err)
	m.server.Start()
	ctx, stop := context.WithCancelCause(context.Background())
	m.stop = stop
	var running sync.WaitGroup
	running.Go(func() { m.done <- m.Run(ctx) })
	running.Go(func() {
		m.done <- m.elector.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
			return m.Lead(ctx, l, m.counted(handler(l)))
		})
	})
	t.Cleanup(func() {
		stop(nil)
		running.Wait()
		m.server.CloseClientConnections()
		m.server.Close()
	})
	return m
}

func (m *member) becomes(role elector.Role) elector.Status {
	m.t.Helper()
	s, err := m.elector.Watch().NextWhere(etcdtest.Context(m.t), func(s elector.Status) bool { return s.Role() == role })
	require.NoError(m.t, err, "%s is not %v: %v", m.id, role, m.elector.Status())
	return s
}

// depose deletes the key of a member, if it leads.
func (m *member) depose() {
	m.t.Helper()
	if key, _, ok := m.elector.Status().Own(); ok {
		_, err := m.etcd.Delete(etcdtest.Context(m.t), key)
		require.NoError(m.t, err)
	}
}

// threeMembers are members of which a leads, b is next and c is last.
func threeMembers(t testing.TB, handler func(id string, l *elector.Leadership) http.HandlerFunc) (a, b, c *member) {
	t.Helper()
	election := etcdtest.Election(t)
	var all []*member
	for i, id := range []string{"a", "b", "c"} {
		m := run(t, election, id, func(l *elector.Leadership) http.HandlerFunc { return handler(id, l) })
		all = append(all, m)
		m.becomes(map[bool]elector.Role{true: elector.Leading, false: elector.Following}[i == 0])
	}
	return all[0], all[1], all[2]
}

var errEnough = errors.New("enough")
