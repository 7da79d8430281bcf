package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// member is a node of a service in a real election.
type member struct {
	*node
	elector *elector.Elector
	etcd    *clientv3.Client
	stop    context.CancelCauseFunc
	done    chan error
}

// run starts a member whose handler is made for each tenure, and stops it with the test.
func run(t testing.TB, election, id string, handler func(l *elector.Leadership) http.HandlerFunc, change ...func(*elector.Config)) *member {
	t.Helper()
	m := &member{node: &node{t: t, id: id}, etcd: etcdtest.Shared(t).Client(t), done: make(chan error, 2)}
	m.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.ServeHTTP(w, r) }))
	m.server.Config.ErrorLog = log.New(noPanics{t}, "", 0)
	cfg := elector.Config{
		Election: election, NodeID: id, Address: m.server.Listener.Addr().String(), Source: elector.Always(elector.Client(m.etcd)),
		Session: lease.Config{TTL: time.Minute}, // a busy machine costs nobody the lease
		Backoff: func(int) time.Duration { return 10 * time.Millisecond },
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	m.elector, err = elector.New(cfg)
	require.NoError(t, err)
	m.Front, err = New(Config{Node: m.elector, Election: election, NodeID: id, Wait: soon})
	require.NoError(t, err)
	m.server.Start()
	var ctx context.Context
	ctx, m.stop = context.WithCancelCause(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.done <- m.Run(ctx) })
	running.Go(func() {
		m.done <- m.elector.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
			h := handler(l)
			return m.Lead(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				m.calls.Add(1)
				h(w, r)
			}))
		})
	})
	t.Cleanup(func() {
		m.stop(nil)
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

// three are members of which a leads, b is next and c is last.
func three(t testing.TB, handler func(id string, l *elector.Leadership) http.HandlerFunc, change ...func(*elector.Config)) (a, b, c *member) {
	t.Helper()
	election := fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
	var all []*member
	for i, id := range []string{"a", "b", "c"} {
		m := run(t, election, id, func(l *elector.Leadership) http.HandlerFunc { return handler(id, l) }, change...)
		all = append(all, m)
		m.becomes(map[bool]elector.Role{true: elector.Leading, false: elector.Following}[i == 0])
	}
	return all[0], all[1], all[2]
}

// says answers with the node and the token of the tenure.
func says(id string, l *elector.Leadership) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, "%s %d", id, l.Token()) }
}

// Any of three nodes answers like the leader, and goes on to when leadership moves: by a
// deletion of the key, and by the end of the node that leads.
func TestAnyOfThree(t *testing.T) {
	t.Parallel()
	a, b, c := three(t, says)
	answers := func(leader *member, of ...*member) {
		t.Helper()
		_, token, ok := leader.becomes(elector.Leading).Own()
		require.True(t, ok)
		for _, m := range of {
			for { // a follower's news of a hand-over may be late: 503 says to try again
				out := m.get()
				if out.StatusCode == http.StatusServiceUnavailable {
					require.Contains(t, out.body, `"nothing_applied":true`)
					continue
				}
				require.Equal(t, http.StatusOK, out.StatusCode, out.body)
				require.Equal(t, leader.id+" "+strconv.FormatInt(int64(token), 10), out.body, m.id)
				break
			}
		}
	}
	answers(a, a, b, c)
	key, _, _ := a.becomes(elector.Leading).Own()
	_, err := a.etcd.Delete(etcdtest.Context(t), key)
	require.NoError(t, err)
	a.becomes(elector.Following) // its news of a deletion may come after the win of b
	answers(b, a, b, c)
	cause := errors.New("enough")
	b.stop(cause)
	require.ErrorIs(t, etcdtest.Take(t, b.done, "the end of a Run"), cause)
	require.ErrorIs(t, etcdtest.Take(t, b.done, "the end of the other"), cause)
	answers(c, a, c)
	b.get() // 503, at once
}

// Through many hand-overs each request is carried out once if it was answered, at most
// once if the answer is 502, and not at all if it is 503.
func TestRequestsThroughHandOvers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	carried := make(map[string]int)
	a, b, c := three(t, func(string, *elector.Leadership) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			id, _ := io.ReadAll(r.Body)
			if len(id) == 0 {
				id = []byte(r.URL.Path)
			}
			mu.Lock()
			carried[string(id)]++
			mu.Unlock()
			if _, err := io.WriteString(w, "done"); err != nil {
				return
			}
		}
	})
	members := []*member{a, b, c}
	for _, m := range members {
		m.server.Client().Transport.(*http.Transport).DisableKeepAlives = true // or the callers send again
	}
	ctx, end := context.WithCancel(etcdtest.Context(t))
	defer end()
	var callers sync.WaitGroup
	var answered, sent atomic.Int64
	want := make([]map[string]int, 6) // of each caller's: the status codes
	for i := range want {
		want[i] = make(map[string]int)
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("/%d/%d", i, n)
				method, body := http.MethodGet, io.Reader(nil)
				if n%2 == 0 {
					method, body = http.MethodPost, strings.NewReader(id)
				}
				out, err := members[(i+n)%3].do(context.WithoutCancel(ctx), method, id, body, "Idempotency-Key", id)
				if err == nil {
					want[i][id] = out.StatusCode
				}
				sent.Add(1)
				if err == nil && out.StatusCode == http.StatusOK {
					answered.Add(1)
				}
			}
		})
	}
	for range 6 {
		before := answered.Load()
		etcdtest.Eventually(t, func() bool { return answered.Load() > before+50 }, "requests in this tenure")
		for _, m := range members {
			if key, _, ok := m.elector.Status().Own(); ok {
				_, err := m.etcd.Delete(ctx, key)
				require.NoError(t, err)
			}
		}
	}
	end()
	callers.Wait()
	mu.Lock()
	defer mu.Unlock()
	for _, codes := range want {
		for id, code := range codes {
			switch code {
			case http.StatusOK:
				require.Equal(t, 1, carried[id], id)
			case http.StatusServiceUnavailable:
				require.Zero(t, carried[id], id)
			case http.StatusBadGateway:
				require.LessOrEqual(t, carried[id], 1, id)
			default:
				require.Fail(t, "an answer that nobody gives", "%s: %d", id, code)
			}
		}
	}
	t.Logf("%d requests, %d answered with 200", sent.Load(), answered.Load())
}

// The context of a handler is the tenure's: a write through the tenure's guard is refused
// after it, and the caller is told so.
func TestGuardOfAHandler(t *testing.T) {
	deposed := make(chan struct{})
	var leader atomic.Pointer[member]
	a, _, c := three(t, func(_ string, l *elector.Leadership) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if _, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok {
				t.Error("the values of the request's context are gone")
			}
			if r.Method == http.MethodGet {
				return
			}
			<-deposed
			_, err := l.Txn(context.WithoutCancel(r.Context())).Then(clientv3.OpPut("web-guarded", "x")).Commit()
			if err == nil {
				t.Error("a deposed leader has written")
				return
			}
			<-r.Context().Done()
			if !errors.Is(context.Cause(r.Context()), eldest.ErrDeposed) {
				t.Errorf("the cause is %v", context.Cause(r.Context()))
			}
			leader.Load().Refuse(w, err, true)
		}
	})
	leader.Store(a)
	answer := async(t, func() (reply, error) { return c.do(etcdtest.Context(t), http.MethodPost, "/", nil) })
	etcdtest.Eventually(t, func() bool { return a.calls.Load() == 1 }, "the handler")
	key, _, _ := a.becomes(elector.Leading).Own()
	_, err := a.etcd.Delete(etcdtest.Context(t), key)
	require.NoError(t, err)
	close(deposed)
	out, err := answer()
	require.NoError(t, err)
	// Either the answer of the handler's, or the follower has given the old leader up.
	require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusBadGateway}, out.StatusCode, out.body)
	require.EqualValues(t, 1, a.calls.Load())
}
