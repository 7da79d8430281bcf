package curator

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

const (
	roleUnknown   = curatorpb.CurrentLeaderResponse_ROLE_UNKNOWN
	roleLeading   = curatorpb.CurrentLeaderResponse_ROLE_LEADING
	roleFollowing = curatorpb.CurrentLeaderResponse_ROLE_FOLLOWING
)

// leaders reads a stream and checks each answer against the rules for all answers.
type leaders struct {
	t      testing.TB
	stream grpc.ServerStreamingClient[curatorpb.CurrentLeaderResponse]
	token  int64
}

// leadersFor opens a stream of leaders.
func (n *node) leadersFor(ctx context.Context) *leaders {
	n.t.Helper()
	stream, err := curatorpb.NewCuratorClient(n.conn).CurrentLeader(ctx, &curatorpb.CurrentLeaderRequest{})
	require.NoError(n.t, err)
	return &leaders{t: n.t, stream: stream}
}

func (l *leaders) next() *curatorpb.CurrentLeaderResponse {
	l.t.Helper()
	r, err := l.stream.Recv()
	require.NoError(l.t, err)
	require.NotEmpty(l.t, r.GetElection())
	require.NotEmpty(l.t, r.GetThisNodeId())
	require.Len(l.t, r.GetThisInstanceId(), 16)
	if r.GetRole() == roleUnknown {
		require.NotEmpty(l.t, r.GetReason())
		require.Empty(l.t, r.GetLeaderNodeId()+r.GetLeaderAddress()+r.GetLeaderInstanceId())
		require.Zero(l.t, r.GetToken())
		return r
	}
	require.Empty(l.t, r.GetReason())
	require.NotEmpty(l.t, r.GetLeaderNodeId())
	require.GreaterOrEqual(l.t, r.GetToken(), l.token, "tokens never go back (G6)")
	require.Equal(l.t, r.GetRole() == roleLeading, r.GetLeaderInstanceId() == r.GetThisInstanceId(), "never both, and no node follows itself")
	l.token = r.GetToken()
	return r
}

// until reads up to an answer with a role and a reason. On a busy machine there are other answers
// in between.
func (l *leaders) until(role curatorpb.CurrentLeaderResponse_Role, reason string) *curatorpb.CurrentLeaderResponse {
	l.t.Helper()
	for {
		if r := l.next(); r.GetRole() == role && strings.Contains(r.GetReason(), reason) {
			return r
		}
	}
}

// named reads up to an answer with a role, in which a member leads.
func (l *leaders) named(role curatorpb.CurrentLeaderResponse_Role, m *member) int64 {
	l.t.Helper()
	r := l.until(role, "")
	require.Equal(l.t, []string{m.cfg.Elector.NodeID, m.address, m.elector.Instance()}, []string{r.GetLeaderNodeId(), r.GetLeaderAddress(), r.GetLeaderInstanceId()})
	return r.GetToken()
}

// end reads up to the end of the stream, and returns its error.
func (l *leaders) end() (err error) {
	for err == nil {
		_, err = l.stream.Recv()
	}
	return err
}

// stranger writes a key of another program into the election, in front of all candidates that are
// queued after it.
func (m *member) stranger(value []byte) (token int64) {
	m.t.Helper()
	key := keys.Candidate(m.cfg.Elector.Election, 0xbad)
	resp, err := m.etcd.Put(etcdtest.Context(m.t), key, string(value))
	require.NoError(m.t, err)
	m.t.Cleanup(func() { _, _ = m.etcd.Delete(etcdtest.Context(m.t), key) })
	return resp.Header.Revision
}

// requireHealth requires the status of all names of the health service, read one by one and as a
// list.
func (n *node) requireHealth(all, leader, alive, serving bool) {
	n.t.Helper()
	client, ctx := healthpb.NewHealthClient(n.conn), etcdtest.Context(n.t)
	list, err := client.List(ctx, &healthpb.HealthListRequest{})
	require.NoError(n.t, err)
	got := make(map[string]bool)
	for name, is := range list.GetStatuses() {
		r, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: name})
		require.NoError(n.t, err)
		require.Equal(n.t, r.GetStatus(), is.GetStatus(), "%q", name)
		got[name] = is.GetStatus() == healthpb.HealthCheckResponse_SERVING
	}
	require.Equal(n.t, map[string]bool{healthAll: all, healthLeader: leader, healthAlive: alive, healthServing: serving}, got, "%v", n.Status())
}

func (n *node) role(want elector.Role, method string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.RoleHandler(want).ServeHTTP(w, httptest.NewRequest(method, "/", nil))
	return w
}

// requireRole reads each RoleHandler: 200 for the role that the node has and 503 for the others,
// with one body.
func (n *node) requireRole(is elector.Role, leader *member, token int64) {
	n.t.Helper()
	body := roleAnswer{Role: is.String(), Node: n.cfg.Elector.NodeID, Token: token}
	if leader != nil {
		body.Leader, body.Address = leader.cfg.Elector.NodeID, leader.address
	}
	for _, want := range []elector.Role{elector.Unknown, elector.Leading, elector.Following} {
		w := n.role(want, http.MethodGet)
		require.Equal(n.t, map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[want == is], w.Code, "%v", n.Status())
		require.Equal(n.t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(n.t, "no-store", w.Header().Get("Cache-Control"))
		var got roleAnswer
		require.NoError(n.t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Equal(n.t, body, got)
	}
}

// Row 48: each node sends its status at once, and each change, and all of them name the same
// leader. Row 53: the health and the role of each node meanwhile.
func TestRequirement48EachChange(t *testing.T) {
	election := etcdtest.Election(t)
	// A stream skips short states: a campaigns again only when its stream has sent that it lost
	// leadership.
	rounds := make(chan struct{}, 1)
	gated := func(cfg *Config) {
		source := cfg.Elector.Source
		cfg.Elector.Source = func(ctx context.Context) (elector.Clients, error) {
			select {
			case <-rounds:
				return source(ctx)
			case <-ctx.Done():
				return elector.Clients{}, context.Cause(ctx)
			}
		}
	}
	a := run(t, election, "a", gated)
	ofA := a.leadersFor(etcdtest.Context(t))
	ofA.until(roleUnknown, "")
	a.requireHealth(false, false, true, false)
	a.requireRole(elector.Unknown, nil, 0)
	rounds <- struct{}{}
	first := ofA.named(roleLeading, a)
	b := run(t, election, "b")
	b.becomes(elector.Following)
	late := b.leadersFor(etcdtest.Context(t))
	require.Equal(t, roleFollowing, late.next().GetRole(), "the first answer is what is known already")
	ofB := b.leadersFor(etcdtest.Context(t))
	require.Equal(t, first, ofB.named(roleFollowing, a))
	a.routed(func(r *route) bool { return r.Tenure != nil })
	a.requireHealth(true, true, true, true)
	b.requireHealth(true, false, true, false)
	a.requireRole(elector.Leading, a, first)
	b.requireRole(elector.Following, a, first)

	a.depose()
	ofA.until(roleUnknown, "")
	rounds <- struct{}{}
	second := ofB.named(roleLeading, b)
	require.Greater(t, second, first)
	require.Equal(t, second, ofA.named(roleFollowing, b))
	cause := context.Canceled
	require.ErrorIs(t, b.end(cause), cause)
	third := ofA.named(roleLeading, a)
	require.Greater(t, third, second)
	a.requireRole(elector.Leading, a, third)
}

// A leader without an address leads nevertheless, and a node that follows it serves nothing. A
// leader whose value cannot be decoded is unknown, with the reason, whatever bytes it has
// (regression 27).
func TestCurrentLeaderStrangers(t *testing.T) {
	m := run(t, etcdtest.Election(t), "n")
	m.becomes(elector.Leading)
	token := m.stranger([]byte{0x0a, 2, 'n', '0', 0x10, 60})
	m.depose()
	l := m.leadersFor(etcdtest.Context(t))
	r := l.until(roleFollowing, "")
	require.Equal(t, []string{"n0", "", ""}, []string{r.GetLeaderNodeId(), r.GetLeaderAddress(), r.GetLeaderInstanceId()})
	require.Equal(t, token, r.GetToken())
	m.requireHealth(false, false, true, false)
	m.stranger([]byte("\xff\xfe strange"))
	l.until(roleUnknown, "not in the expected format")
	m.requireHealth(false, false, true, false)

	m = run(t, etcdtest.Election(t), "n", func(cfg *Config) { cfg.Elector.Codec = named{} })
	m.becomes(elector.Leading)
	m.stranger([]byte("n\xff"))
	m.depose()
	require.Equal(t, "n\ufffd", m.leadersFor(etcdtest.Context(t)).until(roleFollowing, "").GetLeaderNodeId(), "said, although it is no text")
}

// named is a codec that accepts any value as a node's name, as a user's codec might.
type named struct{}

func (named) Encode(id identity.Identity) ([]byte, error) { return []byte(id.NodeID), nil }

func (named) Decode(value []byte) (identity.Identity, error) {
	return identity.Identity{NodeID: string(value), Address: "192.0.2.1:1"}, nil
}

// A watcher of the health receives the status of its name at once and at each change, and of no
// other name. Its stream ends with the node, and the last status is NOT_SERVING.
func TestHealthWatch(t *testing.T) {
	election := etcdtest.Election(t)
	a := run(t, election, "a")
	a.becomes(elector.Leading)
	b := run(t, election, "b")
	b.becomes(elector.Following)
	type watcher = grpc.ServerStreamingClient[healthpb.HealthCheckResponse]
	watch := func(name string) watcher {
		stream, err := healthpb.NewHealthClient(b.conn).Watch(etcdtest.Context(t), &healthpb.HealthCheckRequest{Service: name})
		require.NoError(t, err)
		return stream
	}
	next := func(w watcher) healthpb.HealthCheckResponse_ServingStatus {
		r, err := w.Recv()
		require.NoError(t, err)
		return r.GetStatus()
	}
	leader, alive, who := watch(healthLeader), watch(healthAlive), watch("who?")
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, next(leader))
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, next(alive))
	require.Equal(t, healthpb.HealthCheckResponse_SERVICE_UNKNOWN, next(who))
	_, err := healthpb.NewHealthClient(b.conn).Check(etcdtest.Context(t), &healthpb.HealthCheckRequest{Service: "who?"})
	requireCode(t, codes.NotFound, err)
	require.Error(t, a.end(nil))
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, next(leader), "of other changes a watcher of the leader learns nothing")
	require.Error(t, b.end(nil))
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, next(leader), "the last word of a node that stops")
	for _, w := range []watcher{leader, alive, who} {
		_, err := w.Recv()
		requireCode(t, codes.Unavailable, err)
	}
}

// A stream ends with its caller, with the caller's code, or with the node, and a server with
// streams can stop gracefully. Many callers that do not read delay neither the node nor each
// other.
func TestCurrentLeaderEnds(t *testing.T) {
	n := newNode(t, "n")
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	cancelled := n.leadersFor(ctx)
	cancelled.next()
	cancel()
	requireCode(t, codes.Canceled, cancelled.end())
	short, err := curatorpb.NewCuratorClient(n.conn).CurrentLeader(etcdtest.ContextFor(t, 50*time.Millisecond), &curatorpb.CurrentLeaderRequest{})
	for err == nil { // also if the stream did not open in time
		_, err = short.Recv()
	}
	requireCode(t, codes.DeadlineExceeded, err)

	election := etcdtest.Election(t)
	a := run(t, election, "a")
	a.becomes(elector.Leading)
	b := run(t, election, "b")
	b.becomes(elector.Following)
	var all []*leaders
	for range 100 {
		all = append(all, b.leadersFor(etcdtest.ContextFor(t, 4*etcdtest.Patience))) // until all of them have been read
	}
	a.depose()
	b.becomes(elector.Leading)
	for _, l := range all {
		l.named(roleLeading, b)
	}
	require.Error(t, b.end(nil), "the server does not wait for its streams")
	for _, l := range all {
		require.Equal(t, codes.Unavailable, status.Code(l.end()))
	}
}

// With any names of nodes, an answer does not affect the terminal on which it is printed, and still
// contains the names.
//
// Fails with json.Marshal alone.
func TestRoleAnswersAreAscii(t *testing.T) {
	m := run(t, etcdtest.Election(t), "x\x1b[2J\u009b31m\x7f\u202ecod\u2028\U0001f600")
	m.becomes(elector.Leading)
	body := m.role(elector.Leading, http.MethodGet).Body.String()
	for _, r := range strings.TrimSuffix(body, "\n") {
		require.True(t, ' ' <= r && r <= '~', "%q in %q", r, body)
	}
	var answer roleAnswer
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Equal(t, m.cfg.Elector.NodeID, answer.Leader)
	require.Equal(t, http.StatusOK, m.role(elector.Leading, http.MethodHead).Code)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		w := m.role(elector.Leading, method)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
}

// Row 64: a node that is stopping takes no more calls, and RoleHandler reports this at once.
func TestRow64RoleOfANodeThatStops(t *testing.T) {
	m := run(t, etcdtest.Election(t), "n")
	m.becomes(elector.Leading)
	require.Equal(t, 200, m.role(elector.Leading, "GET").Code)
	m.stopping()
	for _, role := range []elector.Role{elector.Leading, elector.Following, elector.Unknown} {
		answer := m.role(role, "GET")
		require.Equal(t, 503, answer.Code, "%v", role)
		require.Contains(t, answer.Body.String(), `"role":"leading"`, "what it is, it still is")
	}
	m.requireHealth(false, false, true, false)
}
