package face_test

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
	"github.com/eldest-io/eldest/cmd/eldest/internal/face"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// shown is a face that is looked at.
type shown struct {
	*face.Face
	t *testing.T
}

func serve(t *testing.T, grace time.Duration) *shown {
	t.Helper()
	l, err := face.Listen("0")
	require.NoError(t, err)
	s := &shown{face.Serve(l, t.Name(), grace), t}
	t.Cleanup(s.Close)
	return s
}

// ask sends a request and returns what is answered.
func (s *shown) ask(method, path string) (code int, header http.Header, body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.Address()+path, nil)
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
func (s *shown) get(path string) (int, map[string]any) {
	s.t.Helper()
	code, header, body := s.ask(http.MethodGet, path)
	require.Equal(s.t, "application/json", header.Get("Content-Type"))
	require.Equal(s.t, "no-store", header.Get("Cache-Control"))
	var object map[string]any
	require.NoError(s.t, json.Unmarshal([]byte(body), &object))
	return code, object
}

// stand opens a session and makes a candidate that is shown.
func (s *shown) stand(ctx context.Context, cli *clientv3.Client, value string, ttl time.Duration) (*lease.Session, *election.Candidate) {
	s.t.Helper()
	session, err := lease.Open(ctx, lease.Config{Lease: cli, TTL: ttl, Hooks: s.Hooks().Session})
	require.NoError(s.t, err)
	candidate, err := election.New(election.Config{
		Election: s.t.Name(), Session: session, KV: cli, Watcher: cli, Value: []byte(value), Hooks: s.Hooks().Candidate,
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

// A leader and a follower, from before they stand to a hand-over: both are healthy all the
// time, and one of them leads.
func TestLeaderAndFollower(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	a, b := serve(t, time.Minute), serve(t, time.Minute)
	code, role := a.get("/leader")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, map[string]any{"role": "neither", "node": "", "leader": "", "address": "", "token": 0.0}, role)
	code, health := a.get("/healthz")
	require.Equal(t, http.StatusOK, code, "there is time to get a session")
	require.Equal(t, "none", health["session"])

	_, ca := a.stand(ctx, cli, "anna", 30*time.Second)
	la, err := ca.Campaign(ctx)
	require.NoError(t, err)
	_, cb := b.stand(ctx, cli, "bert", 30*time.Second)
	place, err := cb.Register(ctx)
	require.NoError(t, err)

	code, role = a.get("/leader")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, map[string]any{"role": "leading", "node": "anna", "leader": "anna", "address": "", "token": float64(la.Token())}, role)
	require.Eventually(t, func() bool { _, role = b.get("/leader"); return role["role"] == "following" }, 20*time.Second, 5*time.Millisecond)
	code, _ = b.get("/leader")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, map[string]any{"role": "following", "node": "bert", "leader": "anna", "address": "", "token": float64(la.Token())}, role)
	for _, one := range []*shown{a, b} {
		code, health = one.get("/healthz")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "ok", health["status"])
		require.Equal(t, "alive", health["session"])
		require.Positive(t, health["remaining_seconds"])
	}
	var text string
	require.Eventually(t, func() bool { // its observer may know of the leader before it knows of its own key
		code, _, text = b.ask(http.MethodGet, "/metrics")
		return strings.Contains(text, fmt.Sprintf("eldest_queue_length{election=%q} 2", t.Name()))
	}, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, http.StatusOK, code)
	for _, line := range []string{
		fmt.Sprintf("eldest_state{election=%q,state=\"following\"} 1", t.Name()),
		"go_goroutines ", "process_start_time_seconds ",
	} {
		require.Contains(t, text, line)
	}

	require.NoError(t, la.Resign(ctx))
	_, err = cb.Await(ctx)
	require.NoError(t, err)
	code, role = b.get("/leader")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, float64(place.Token), role["token"])
	code, role = a.get("/leader")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "neither", role["role"], "it is not in the queue any more")
	code, _ = a.get("/healthz")
	require.Equal(t, http.StatusOK, code, "its session lives")
}

// A leader of another program whose value is a node's is shown by its name and address.
func TestFollowerOfANode(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: "n1", Address: "10.0.0.1:7001", TTL: 30 * time.Second})
	require.NoError(t, err)
	first, second := serve(t, time.Minute), serve(t, time.Minute)
	_, ca := first.stand(ctx, cli, string(value), 30*time.Second)
	_, err = ca.Campaign(ctx)
	require.NoError(t, err)
	_, cb := second.stand(ctx, cli, "b", 30*time.Second)
	_, err = cb.Register(ctx)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, role := second.get("/leader")
		return role["leader"] == "n1" && role["address"] == "10.0.0.1:7001"
	}, 20*time.Second, 5*time.Millisecond)
}

// A candidate whose key is the eldest and whose win is not proven yet is neither: it does
// not follow itself.
func TestAboutToLead(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	s := serve(t, time.Minute)
	_, c := s.stand(ctx, cli, "v", 30*time.Second)
	_, err := c.Register(ctx)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, _, text := s.ask(http.MethodGet, "/metrics")
		return strings.Contains(text, fmt.Sprintf("eldest_queue_length{election=%q} 1", t.Name()))
	}, 20*time.Second, 5*time.Millisecond, "the face's observer sees the key")
	code, role := s.get("/leader")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, map[string]any{"role": "neither", "node": "v", "leader": "", "address": "", "token": 0.0}, role)
}

// While etcd is away: healthy as long as the lease is certain, and for the grace after it;
// then in trouble, with the reason; and healthy again with the next session. /leader says
// 503 from the moment at which the lease is not certain any more.
func TestHealthWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	// Nobody misses so long a time as the grace, or that between a renewal that fails and the end.
	const grace, ttl = 3 * time.Second, 5 * time.Second
	s := serve(t, grace)
	session, c := s.stand(ctx, cli, "v", ttl)
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
	}
	// A look may fall between the first two, on a busy machine.
	require.Equal(t, []string{"200 jeopardy ok", "200 lost ok", "503 lost trouble"}, states[len(states)-3:])
	require.Error(t, session.Err())
	code, role := s.get("/leader")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "neither", role["role"])

	host.Mend()
	next, err := lease.Open(ctx, lease.Config{Lease: cli, TTL: 30 * time.Second, Hooks: s.Hooks().Session})
	require.NoError(t, err)
	require.Eventually(t, func() bool { code, _ := s.get("/healthz"); return code == http.StatusOK }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, next.Close(ctx))
}

// A participant that never gets a session is in trouble after the grace.
func TestHealthWithoutASession(t *testing.T) {
	s := serve(t, 300*time.Millisecond)
	require.Eventually(t, func() bool {
		code, health := s.get("/healthz")
		return code == http.StatusServiceUnavailable && health["session"] == "none" && strings.Contains(fmt.Sprint(health["reason"]), "no session yet")
	}, 20*time.Second, 5*time.Millisecond)
}

// A node's own word counts, and its own answer.
func TestNode(t *testing.T) {
	s := serve(t, time.Minute)
	s.Node(fixed{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	code, _, _ := s.ask(http.MethodGet, "/leader")
	require.Equal(t, http.StatusTeapot, code)
}

// The numbers of calls are a node's: a candidate has none.
func TestCallsOfANode(t *testing.T) {
	s := serve(t, time.Minute)
	_, _, text := s.ask(http.MethodGet, "/metrics")
	require.NotContains(t, text, "eldest_service_")
	s.Calls().Answered(curator.CallEvent{Way: curator.WayRefused, Code: codes.Unavailable, Refusal: curator.RefusalNoLeader})
	s.Node(fixed{}, http.NotFoundHandler())
	_, _, text = s.ask(http.MethodGet, "/metrics")
	for _, line := range []string{
		fmt.Sprintf("eldest_service_calls_total{code=\"Unavailable\",election=%q,way=\"refused\"} 1", t.Name()),
		fmt.Sprintf("eldest_service_refusals_total{election=%q,reason=\"no_leader\"} 1", t.Name()),
		fmt.Sprintf("eldest_service_waiting_calls{election=%q} 3", t.Name()),
		fmt.Sprintf("eldest_service_calls_in_flight{election=%q,way=\"served\"} 2", t.Name()),
	} {
		require.Contains(t, text, line)
	}
}

// fixed is a node that does nothing.
type fixed struct{}

func (fixed) Status() elector.Status { return elector.Status{} }
func (fixed) Load() curator.Load     { return curator.Load{Waiting: 3, Serving: 2} }

func TestOnlyReaders(t *testing.T) {
	s := serve(t, time.Minute)
	for _, path := range []string{"/metrics", "/healthz", "/leader"} {
		code, header, _ := s.ask(http.MethodPost, path)
		require.Equal(t, http.StatusMethodNotAllowed, code, path)
		require.Equal(t, "GET, HEAD", header.Get("Allow"))
		code, header, body := s.ask(http.MethodHead, path)
		require.NotEqual(t, http.StatusMethodNotAllowed, code, path)
		require.Equal(t, "no-store", header.Get("Cache-Control"))
		require.Empty(t, body)
	}
	code, _, _ := s.ask(http.MethodGet, "/debug/pprof/")
	require.Equal(t, http.StatusNotFound, code)
}

// Without --http there is no face, and nothing of it does anything.
func TestNoFace(t *testing.T) {
	var f *face.Face
	require.Zero(t, f.Hooks())
	require.Nil(t, f.Calls().Answered)
	require.Empty(t, f.Address())
	f.Candidate(nil, nil, "")
	f.Node(nil, nil)
	require.NoError(t, f.Observe(nil))
	f.Close()
}

// Who tries the address is told what there is; what there is not is not there.
func TestContents(t *testing.T) {
	s := serve(t, time.Minute)
	code, _, text := s.ask(http.MethodGet, "/")
	require.Equal(t, http.StatusOK, code)
	for _, path := range []string{t.Name(), "/metrics", "/healthz", "/leader"} {
		require.Contains(t, text, path)
	}
	code, _, _ = s.ask(http.MethodGet, "/nothing")
	require.Equal(t, http.StatusNotFound, code)
}

// Between two rounds there is no session on purpose, and the answer says why: until the
// next session, and no longer.
func TestRest(t *testing.T) {
	ctx, cli := etcdtest.Context(t), etcdtest.Shared(t).Client(t)
	s := serve(t, time.Minute)
	session, _ := s.stand(ctx, cli, "v", 30*time.Second)
	require.NoError(t, session.Close(ctx))
	s.Rest("the program ended: exit code 3", time.Minute)
	code, health := s.get("/healthz")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, health["reason"], "s: the program ended: exit code 3")
	require.Contains(t, health["reason"], "it stands again in ")
	again, _ := s.stand(ctx, cli, "v", 30*time.Second)
	_, health = s.get("/healthz")
	require.NotContains(t, health, "reason")
	require.NoError(t, again.Close(ctx))
	_, health = s.get("/healthz")
	require.NotContains(t, health["reason"], "exit code 3")
}

// After Close nobody answers, and a second one is harmless.
func TestClose(t *testing.T) {
	s := serve(t, time.Minute)
	s.Close()
	s.Close()
	_, err := net.Dial("tcp", s.Address())
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "the port is closed, not silent")
	require.NoError(t, s.Observe(nil), "too late to begin anything")
}

func TestGrace(t *testing.T) {
	require.Equal(t, 10*time.Second, face.Grace(2*time.Second))
	require.Equal(t, 40*time.Second, face.Grace(20*time.Second))
}
