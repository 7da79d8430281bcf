package regressions

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// front is an HTTP load balancer in front of etcd, over HTTP/2 without TLS.
type front struct {
	url string

	mu      sync.Mutex
	answer  int // the status with which requests are answered; 0: they are passed on to etcd
	refused map[string]int
	passed  map[string]int
	conns   map[net.Conn]bool // of clients
}

func newFront(t testing.TB, c *etcdtest.Cluster) *front {
	t.Helper()
	etcd, err := url.Parse(c.Endpoints()[0])
	require.NoError(t, err)
	f := &front{refused: map[string]int{}, passed: map[string]int{}, conns: map[net.Conn]bool{}}
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &plain}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(etcd) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := &http.Server{
		Protocols:         &plain,
		ReadHeaderTimeout: etcdtest.Patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer := f.receives(path.Base(r.URL.Path)); answer > 0 {
				http.Error(w, "not now", answer)
				return
			}
			proxy.ServeHTTP(w, r)
		}),
		ConnState: f.connection,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.url = "http://" + listener.Addr().String()
	served := etcdtest.Go(func() error { return server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		require.ErrorIs(t, <-served, http.ErrServerClosed)
		transport.CloseIdleConnections()
	})
	return f
}

// client returns a client that reaches etcd through the front only.
func (f *front) client(t testing.TB, c *etcdtest.Cluster) *clientv3.Client {
	return c.Client(t, func(cfg *clientv3.Config) { cfg.Endpoints = []string{f.url} })
}

func (f *front) connection(conn net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch state {
	case http.StateNew:
		f.conns[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(f.conns, conn)
	}
}

func (f *front) receives(method string) (answer int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answer > 0 {
		f.refused[method]++
	} else {
		f.passed[method]++
	}
	return f.answer
}

// refuse makes the front answer with the status from now on; with 0 it passes requests on. With cut
// it also breaks the connections, and with them the watches.
func (f *front) refuse(answer int, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
	clear(f.refused)
	clear(f.passed)
	if cut {
		for conn := range f.conns {
			_ = conn.Close()
		}
	}
}

// seen waits until n requests of a method were refused, or passed on, since refuse.
func (f *front) seen(t testing.TB, count map[string]int, method string, n int) {
	t.Helper()
	etcdtest.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return count[method] >= n
	}, "%d requests of %s", n, method)
}

// answers are the statuses with which load balancers answer while they are reconfigured or
// restarted.
var answers = map[string]int{"401": http.StatusUnauthorized, "403": http.StatusForbidden, "404": http.StatusNotFound, "429": http.StatusTooManyRequests}

func rechecked(_ *lease.Config, e *election.Config) { e.WatchCheck = 100 * time.Millisecond }

// Row 48. A load balancer answers in place of etcd for a moment. Other implementations treat its
// 403 or 404 as a final answer of etcd: it deposes a leader whose watch is checked at that moment,
// and ends the campaigns of the others. Eldest repeats the requests.
//
// Fails when internal/rpcerr.Permanent uses the code alone, or when the refusal of a watch is
// final.
func TestRegression48_BalancerRefusesForAMoment(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for name, answer := range answers {
		for _, cut := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and breaks connections"}[cut], func(t *testing.T) {
				t.Parallel()
				f := newFront(t, c)
				cli, name := f.client(t, c), etcdtest.Election(t)
				p, waiter := join(t, cli, name, rechecked), join(t, cli, name, rechecked)

				f.refuse(answer, cut)
				campaign := p.Campaign(etcdtest.Context(t))
				f.seen(t, f.refused, "Txn", 2)
				f.refuse(0, false)
				tenure := electiontest.Wins(t, campaign)
				result := waiter.Queue(t)
				f.seen(t, f.passed, "Range", 2)

				f.refuse(answer, cut)
				f.seen(t, f.refused, "Range", 3)
				if cut {
					f.seen(t, f.refused, "Watch", 1)
				}
				f.refuse(0, false)
				f.seen(t, f.passed, "Range", 6) // two candidates, so each was checked again
				require.NoError(t, tenure.Err(), "the leader was deposed by a balancer")
				require.Empty(t, result, "the campaign was ended by a balancer")

				f.refuse(answer, cut)
				require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), tenure.Key())))
				f.seen(t, f.refused, "Range", 2)
				f.refuse(0, false)
				require.Greater(t, electiontest.Wins(t, result).Token(), tenure.Token())
			})
		}
	}
}

// Row 48, where the load balancer refuses for ever: all calls end with that error, within seconds.
//
// Fails when a refusal that is not from etcd is never final.
func TestRegression48_BalancerRefusesForEver(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, answer := range []int{http.StatusForbidden, http.StatusNotFound} {
		t.Run(http.StatusText(answer), func(t *testing.T) {
			t.Parallel()
			f := newFront(t, c)
			cli, name := f.client(t, c), etcdtest.Election(t)
			refusal := func(err error) {
				t.Helper()
				require.NotErrorIs(t, err, context.DeadlineExceeded, "etcd was asked without end")
				var refused interface{ GRPCStatus() *status.Status }
				require.ErrorAs(t, err, &refused)
				require.Contains(t, []codes.Code{codes.PermissionDenied, codes.Unimplemented}, refused.GRPCStatus().Code())
			}
			leader, late := join(t, cli, name, rechecked), join(t, cli, name)
			waiter := join(t, cli, name, rechecked, func(_ *lease.Config, e *election.Config) {
				e.Timeout = time.Second // a shorter timeout does not matter
			})
			tenure := leader.Lead(t)
			result := waiter.Queue(t)
			f.seen(t, f.passed, "Watch", 1)
			f.refuse(answer, true)
			campaign := late.Campaign(etcdtest.Context(t))
			refusal(electiontest.Fails(t, result).Reason)
			<-tenure.Done()
			require.ErrorIs(t, tenure.Err(), eldest.ErrDeposed)
			refusal(tenure.Err())
			err := electiontest.Fails(t, campaign).Reason
			refusal(err)
			require.ErrorIs(t, err, eldest.ErrOutcomeUnknown, "a balancer's refusal proves nothing of what etcd did")
			f.refuse(0, false)
		})
	}
}
