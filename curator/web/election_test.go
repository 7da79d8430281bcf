package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Each of three nodes answers like the leader, and also after leadership moves: because the key is
// deleted, and because the node that leads ends.
func TestAnyOfThree(t *testing.T) {
	t.Parallel()
	a, b, c := threeMembers(t, func(id string, l *elector.Leadership) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, "%s %d", id, l.Token()) }
	})
	answers := func(leader *member, of ...*member) {
		t.Helper()
		_, token, _ := leader.becomes(elector.Leading).Own()
		for _, m := range of {
			out := m.get()
			for out.StatusCode == http.StatusServiceUnavailable { // a follower's status may be late after a hand-over; the answer is that the request can be retried
				require.Contains(t, out.body, `"nothing_applied":true`)
				out = m.get()
			}
			require.Equal(t, http.StatusOK, out.StatusCode, out.body)
			require.Equal(t, fmt.Sprintf("%s %d", leader.id, token), out.body, m.id)
		}
	}
	answers(a, a, b, c)
	a.depose()
	a.becomes(elector.Following) // it may receive the deletion after b has won
	answers(b, a, b, c)
	b.stop(errEnough)
	require.ErrorIs(t, etcdtest.Take(t, b.done, "the end of a Run"), errEnough)
	require.ErrorIs(t, etcdtest.Take(t, b.done, "the end of the other"), errEnough)
	answers(c, a, c)
	b.get() // 503, at once
}

// Through many hand-overs each request is carried out once if it was answered, at most
// once if the answer is 502, and not at all if it is 503.
func TestRequestsThroughHandOvers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	carried := make(map[string]int)
	a, b, c := threeMembers(t, func(string, *elector.Leadership) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			id, _ := io.ReadAll(r.Body)
			if len(id) == 0 {
				id = []byte(r.URL.Path)
			}
			mu.Lock()
			carried[string(id)]++
			mu.Unlock()
			_, _ = io.WriteString(w, "done")
		}
	})
	members := []*member{a, b, c}
	for _, m := range members {
		m.server.Client().Transport.(*http.Transport).DisableKeepAlives = true // otherwise the callers send again
	}
	ctx, end := context.WithCancel(etcdtest.Context(t))
	defer end()
	var callers sync.WaitGroup
	var answered, sent atomic.Int64
	answers := make(map[string]int) // the status codes
	for i := range 6 {
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("/%d/%d", i, n)
				method, body := http.MethodGet, io.Reader(nil)
				if n%2 == 0 {
					method, body = http.MethodPost, strings.NewReader(id)
				}
				out, err := members[(i+n)%3].do(context.WithoutCancel(ctx), method, id, body, "Idempotency-Key", id)
				sent.Add(1)
				if err != nil {
					continue
				}
				mu.Lock()
				answers[id] = out.StatusCode
				mu.Unlock()
				if out.StatusCode == http.StatusOK {
					answered.Add(1)
				}
			}
		})
	}
	for range 6 {
		before := answered.Load()
		etcdtest.Eventually(t, func() bool { return answered.Load() > before+50 }, "requests in this tenure")
		for _, m := range members {
			m.depose()
		}
	}
	end()
	callers.Wait()
	mu.Lock()
	defer mu.Unlock()
	for id, code := range answers {
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
	t.Logf("%d requests, %d answered with 200", sent.Load(), answered.Load())
}

// The context of a handler is the tenure's. After its end the tenure's guard refuses a write, and
// the caller receives this.
func TestGuardOfAHandler(t *testing.T) {
	deposed := make(chan struct{})
	var leader atomic.Pointer[member]
	a, _, c := threeMembers(t, func(_ string, l *elector.Leadership) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if _, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok {
				t.Error("the values of the request's context are gone")
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
	answer := c.ask("/")
	etcdtest.Eventually(t, func() bool { return a.calls.Load() == 1 }, "the handler")
	a.depose()
	close(deposed)
	// Either the answer is the handler's, or the follower has closed the connections to the old
	// leader.
	require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusBadGateway}, answer().StatusCode)
	require.EqualValues(t, 1, a.calls.Load())
}
