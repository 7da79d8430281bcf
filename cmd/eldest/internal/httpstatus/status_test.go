package httpstatus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/httpstatus"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// shown is a status that is served.
type shown struct {
	*httpstatus.Status
	t  *testing.T
	at string
}

func serve(t *testing.T, grace time.Duration) *shown {
	t.Helper()
	l, err := httpstatus.Listen("0")
	require.NoError(t, err)
	return serveOn(t, l, grace)
}

func serveOn(t *testing.T, l net.Listener, grace time.Duration) *shown {
	s := &shown{httpstatus.New(t.Name(), grace), t, l.Addr().String()}
	s.Serve(l)
	t.Cleanup(s.Close)
	return s
}

// ask sends a request and returns the answer.
func (s *shown) ask(method, path string) (code int, header http.Header, body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.at+path, nil)
	require.NoError(s.t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, resp.Header, string(text)
}

// get returns the code and the object of an answer.
func (s *shown) get(path string) (code int, object map[string]any) {
	s.t.Helper()
	code, header, body := s.ask(http.MethodGet, path)
	require.Equal(s.t, "application/json", header.Get("Content-Type"))
	require.Equal(s.t, "no-store", header.Get("Cache-Control"))
	require.NoError(s.t, json.Unmarshal([]byte(body), &object))
	return code, object
}

// is requires the answer at /leader.
func (s *shown) is(code int, role, node, leader, address string, token eldest.Token) {
	s.t.Helper()
	got, object := s.get("/leader")
	require.Equal(s.t, code, got)
	require.Equal(s.t, map[string]any{"role": role, "node": node, "leader": leader, "address": address, "token": float64(token)}, object)
}

// until waits until a path shows all parts.
func (s *shown) until(path string, parts ...string) {
	s.t.Helper()
	etcdtest.Eventually(s.t, func() bool {
		_, _, text := s.ask(http.MethodGet, path)
		for _, part := range parts {
			if !strings.Contains(text, strings.ReplaceAll(part, "NAME", fmt.Sprintf("election=%q", s.t.Name()))) {
				return false
			}
		}
		return true
	}, "%s does not show %q", path, parts)
}

const long = 30 * time.Second

// candidate opens a session and makes a candidate that is shown.
func (s *shown) candidate(cli *clientv3.Client, value string, ttl time.Duration) (*lease.Session, *election.Candidate) {
	s.t.Helper()
	session, err := lease.Open(etcdtest.Context(s.t), lease.Config{Lease: cli, Options: lease.Options{TTL: ttl, Hooks: s.Hooks().Session}})
	require.NoError(s.t, err)
	candidate, err := election.New(election.Config{
		Election: s.t.Name(), Session: session, KV: cli, Watcher: cli, Value: []byte(value),
		Options: election.Options{Hooks: s.Hooks().Candidate},
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = candidate.Close(ctx)
		_ = session.Close(ctx)
	})
	s.Candidate(session, candidate, value)
	require.NoError(s.t, s.Observe(cli))
	return session, candidate
}

// A leader and a follower, from before they are candidates to the end of the first one's tenure: both are
// healthy all the time, and one of them leads.
func TestLeaderAndFollower(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	a, b := serve(t, time.Minute), serve(t, time.Minute)
	a.is(503, "unknown", "", "", "", 0)
	code, health := a.get("/healthz")
	require.Equal(t, http.StatusOK, code, "there is time to get a session")
	require.Equal(t, "none", health["session"])

	_, ca := a.candidate(cli, "anna", long)
	la, err := ca.Campaign(ctx)
	require.NoError(t, err)
	_, cb := b.candidate(cli, "bert", long)
	registered, err := cb.Register(ctx)
	require.NoError(t, err)
	a.is(200, "leading", "anna", "anna", "", la.Token())
	b.until("/leader", `"role":"following"`)
	b.is(503, "following", "bert", "anna", "", la.Token())
	for _, one := range []*shown{a, b} {
		code, health = one.get("/healthz")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "ok", health["status"])
		require.Equal(t, "alive", health["session"])
		require.Positive(t, health["remaining_seconds"])
	}
	b.until("/metrics", "eldest_queue_length{NAME} 2", `eldest_state{NAME,state="following"} 1`, "go_goroutines ", "process_start_time_seconds ")

	require.NoError(t, la.Resign(ctx))
	_, err = cb.Await(ctx)
	require.NoError(t, err)
	b.is(200, "leading", "bert", "bert", "", registered.Token)
	code, role := a.get("/leader")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "unknown", role["role"], "it is not in the queue any more")
	code, _ = a.get("/healthz")
	require.Equal(t, http.StatusOK, code, "its session lives")
}

// A leader of another program whose value is a node's is shown by its name and address.
func TestFollowerOfANode(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: "n1", Address: "10.0.0.1:7001", TTL: long})
	require.NoError(t, err)
	first, second := serve(t, time.Minute), serve(t, time.Minute)
	_, ca := first.candidate(cli, string(value), long)
	_, err = ca.Campaign(ctx)
	require.NoError(t, err)
	_, cb := second.candidate(cli, "b", long)
	_, err = cb.Register(ctx)
	require.NoError(t, err)
	second.until("/leader", `"leader":"n1"`, `"address":"10.0.0.1:7001"`)
}

// A candidate whose key is the eldest and whose win is not proven yet is unknown: it does
// not follow itself.
func TestAboutToLead(t *testing.T) {
	s := serve(t, time.Minute)
	_, c := s.candidate(etcdtest.Shared(t).Client(t), "v", long)
	_, err := c.Register(etcdtest.Context(t))
	require.NoError(t, err)
	s.until("/metrics", "eldest_queue_length{NAME} 1")
	s.is(503, "unknown", "v", "", "", 0)
}

// While etcd cannot be reached, a participant is healthy as long as the lease is certain and for the
// grace after it, then in trouble, with the reason; with the next session it is healthy again.
// /leader answers 503 from the moment at which the lease is not certain any more.
func TestHealthWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	// The loop sees the grace, and the time from a failed renewal to the end, because both are long: longer
	// than a busy machine keeps it from looking.
	const grace, ttl = 4 * time.Second, 6 * time.Second
	s := serve(t, grace)
	session, c := s.candidate(cli, "v", ttl)
	_, err := c.Campaign(ctx)
	require.NoError(t, err)
	host.Cut()
	var states []string
	for {
		code, health := s.get("/healthz")
		state := fmt.Sprint(code, " ", health["session"], " ", health["status"])
		if len(states) == 0 || states[len(states)-1] != state {
			states = append(states, state)
		}
		if leading, _ := s.get("/leader"); leading == http.StatusOK {
			require.NotEqual(t, "lost", health["session"], "leading without a session")
		}
		if code != http.StatusOK {
			require.Greater(t, health["without_session_seconds"], grace.Seconds())
			require.Contains(t, health["reason"], eldest.ErrSessionLost.Error())
			break
		}
		require.NoError(t, ctx.Err())
		time.Sleep(5 * time.Millisecond)
	}
	// On a busy machine there may be other states before these.
	require.Equal(t, []string{"200 at-risk ok", "200 lost ok", "503 lost trouble"}, states[len(states)-3:])
	require.Error(t, session.Err())
	s.is(503, "unknown", "v", "", "", 0)

	host.Mend()
	next, err := lease.Open(ctx, lease.Config{Lease: cli, Options: lease.Options{TTL: long, Hooks: s.Hooks().Session}})
	require.NoError(t, err)
	s.until("/healthz", `"status":"ok"`)
	require.NoError(t, next.Close(ctx))
}

// The hooks of a session that has ended may run after those of the next one, whose end is not theirs.
//
// Fails if a late hook has health check what has ended, or begin the time without a session.
func TestHealthAfterLateHooksOfAnEarlierSession(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	open := func(hooks lease.Hooks) *lease.Session {
		session, err := lease.Open(ctx, lease.Config{Lease: cli, Options: lease.Options{TTL: long, Hooks: hooks}})
		require.NoError(t, err)
		return session
	}
	const grace = 100 * time.Millisecond
	s := serve(t, grace)
	first := open(lease.Hooks{})
	require.NoError(t, first.Close(ctx))
	next := open(lease.Hooks{}) // its hooks run later than the test does
	s.Candidate(next, nil, "v")
	late := s.Hooks().Session
	late.Opened(lease.OpenedEvent{Session: first})
	late.Lost(lease.LostEvent{Cause: first.Err()})
	time.Sleep(2 * grace)
	code, health := s.get("/healthz")
	require.Equal(t, http.StatusOK, code, health)
	require.Equal(t, "alive", health["session"])
	require.NoError(t, next.Close(ctx))
	code, health = s.get("/healthz")
	require.Equal(t, http.StatusOK, code, "it has ended just now: %v", health)
}

// A participant that never gets a session is in trouble after the grace.
func TestHealthWithoutASession(t *testing.T) {
	t.Parallel()
	s := serve(t, 300*time.Millisecond)
	s.until("/healthz", "trouble", `"session":"none"`, "no session yet")
	code, _ := s.get("/healthz")
	require.Equal(t, http.StatusServiceUnavailable, code)
}

// The status and the answer at /leader are those of the node. Only a node has numbers of calls; a
// candidate has none.
func TestNode(t *testing.T) {
	s := serve(t, time.Minute)
	_, _, text := s.ask(http.MethodGet, "/metrics")
	require.NotContains(t, text, "eldest_service_")
	s.Calls().Answered(curator.CallEvent{Way: curator.WayRefused, Code: codes.Unavailable, Refusal: curator.RefusalNoLeader})
	s.Node(fixed{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	code, _, _ := s.ask(http.MethodGet, "/leader")
	require.Equal(t, http.StatusTeapot, code)
	s.until("/metrics",
		`eldest_service_calls_total{code="Unavailable",NAME,way="refused"} 1`, `eldest_service_refusals_total{NAME,reason="no_leader"} 1`,
		`eldest_service_waiting_calls{NAME} 3`, `eldest_service_calls_in_flight{NAME,way="served"} 2`)
}

// fixed is a node that does nothing.
type fixed struct{}

func (fixed) Status() elector.Status { return elector.Status{} }
func (fixed) Load() curator.Load     { return curator.Load{Waiting: 3, Serving: 2} }

// Only GET and HEAD are answered, and / lists the paths.
func TestPaths(t *testing.T) {
	s := serve(t, time.Minute)
	_, _, contents := s.ask(http.MethodGet, "/")
	require.Contains(t, contents, t.Name())
	for _, path := range []string{"/metrics", "/healthz", "/leader"} {
		require.Contains(t, contents, path)
		code, header, _ := s.ask(http.MethodPost, path)
		require.Equal(t, http.StatusMethodNotAllowed, code, path)
		require.Equal(t, "GET, HEAD", header.Get("Allow"))
		code, header, body := s.ask(http.MethodHead, path)
		require.NotEqual(t, http.StatusMethodNotAllowed, code, path)
		require.Equal(t, "no-store", header.Get("Cache-Control"))
		require.Empty(t, body)
	}
	for _, path := range []string{"/debug/pprof/", "/nothing"} {
		code, _, _ := s.ask(http.MethodGet, path)
		require.Equal(t, http.StatusNotFound, code)
	}
}

// Between two rounds there is no session on purpose. Until the next session, and no longer, the
// answer has the reason.
func TestRest(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	s := serve(t, time.Minute)
	session, _ := s.candidate(cli, "v", long)
	require.NoError(t, session.Close(ctx))
	s.Rest("the program ended: exit code 3", time.Minute)
	code, health := s.get("/healthz")
	require.Equal(t, http.StatusOK, code)
	require.Regexp(t, `^the next campaign starts in .* s: the program ended: exit code 3$`, health["reason"])
	again, _ := s.candidate(cli, "v", long)
	_, health = s.get("/healthz")
	require.NotContains(t, health, "reason")
	require.NoError(t, again.Close(ctx))
	_, health = s.get("/healthz")
	require.NotContains(t, health["reason"], "exit code 3")
}

// After Close no request is answered, and a second Close is harmless. A status that is not served has
// nothing to close, and opens no watch.
func TestClose(t *testing.T) {
	s := serve(t, time.Minute)
	s.Close()
	s.Close()
	_, err := net.Dial("tcp", s.at)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "the port is closed, not silent")
	require.NoError(t, s.Observe(nil), "too late to begin anything")
	kept := httpstatus.New("e", time.Minute)
	require.NoError(t, kept.Observe(nil))
	kept.Close()
}

func TestGrace(t *testing.T) {
	require.Equal(t, 10*time.Second, httpstatus.Grace(2*time.Second))
	require.Equal(t, 40*time.Second, httpstatus.Grace(20*time.Second))
}

// A port alone is on the loopback address; a host is taken as it is.
func TestListen(t *testing.T) {
	for address, host := range map[string]string{
		"0": "127.0.0.1", ":0": "127.0.0.1", "127.0.0.1:0": "127.0.0.1", "localhost:0": "127.0.0.1", "0.0.0.0:0": "::",
	} {
		l, err := httpstatus.Listen(address)
		require.NoError(t, err, address)
		require.Equal(t, host, l.Addr().(*net.TCPAddr).IP.String(), address)
		require.NoError(t, l.Close())
	}
	for _, address := range []string{"", ":", "x", "70000", "-1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "a:b:c", "::1:80", "http://127.0.0.1:80"} {
		_, err := httpstatus.Listen(address)
		require.ErrorIs(t, err, httpstatus.ErrAddress, address)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, err = httpstatus.Listen(taken.Addr().String())
	require.ErrorContains(t, err, "port 0 is", "what to do is said")
	_, err = httpstatus.Listen("192.0.2.1:0") // an address of no machine
	require.Error(t, err)
}
