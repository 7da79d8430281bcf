package metrics_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/metrics"
)

// node is one node of the key-value service, with the results that a client of it has received.
type node struct {
	*curator.Curator
	t        *testing.T
	registry *prometheus.Registry
	kv       kvpb.KVClient

	mu    sync.Mutex
	codes map[codes.Code]int
}

func serve(t *testing.T, cli *clientv3.Client, id string, change ...func(*curator.Config)) *node {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	numbers := metrics.NewService(t.Name())
	n := &node{t: t, registry: prometheus.NewPedanticRegistry(), codes: make(map[codes.Code]int)}
	n.registry.MustRegister(numbers)
	cfg := curator.Config{
		Elector: elector.Config{
			Election: t.Name(), NodeID: id, Source: elector.Always(elector.Client(cli)), Session: lease.Options{TTL: time.Minute},
		},
		Listeners: []curator.Listener{{Listener: listener}},
		Wait:      etcdtest.Patience, Drain: etcdtest.Patience, Grace: etcdtest.Patience, Shutdown: etcdtest.Patience,
		Hooks: numbers.Hooks(),
		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err == nil {
				kvpb.RegisterKVServer(r, server)
			}
			return err
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	n.Curator, err = curator.New(cfg)
	require.NoError(t, err)
	numbers.Attach(n)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.Run(ctx)
	}()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoker(ctx, method, req, reply, cc, opts...)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.codes[status.Code(err)]++
			return err
		}))
	require.NoError(t, err)
	n.kv = kvpb.NewKVClient(conn)
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		<-ended
	})
	return n
}

func (n *node) becomes(role elector.Role) elector.Status {
	n.t.Helper()
	s, err := n.Watch().NextWhere(etcdtest.Context(n.t), func(s elector.Status) bool { return s.Role() == role })
	require.NoError(n.t, err)
	return s
}

// ids are the IDs of requests.
var ids atomic.Int64

// put makes a call, in the background.
func (n *node) put() <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := n.kv.Put(etcdtest.Context(n.t), &kvpb.PutRequest{Key: "k", RequestId: fmt.Sprint(ids.Add(1))})
		done <- err
	}()
	return done
}

// shows waits until a scrape shows a value.
func (n *node) shows(name string, want float64) {
	n.t.Helper()
	require.Eventually(n.t, func() bool { return scrape(n.t, n.registry)[name] == want }, etcdtest.Patience, 5*time.Millisecond, "%s never was %v", name, want)
}

// addsUp asserts that the counts are those of the client.
func (n *node) addsUp() {
	n.t.Helper()
	now := scrape(n.t, n.registry)
	all := 0
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		sum := 0.0
		for _, way := range []string{"served", "forwarded", "refused"} {
			sum += now[`eldest_service_calls_total{code="`+code.String()+`"}{way="`+way+`"}`]
		}
		require.EqualValues(n.t, n.codes[code], sum, code)
		all += n.codes[code]
	}
	require.EqualValues(n.t, all, now["eldest_service_wait_seconds"])
}

func calls(way string, code codes.Code) string {
	return `eldest_service_calls_total{code="` + code.String() + `"}{way="` + way + `"}`
}

func refusals(reason curator.Refusal) string {
	return `eldest_service_refusals_total{reason="` + reason.String() + `"}`
}

// Each node counts the calls of its callers, and the leader also counts the hops.
func TestCallsOfTwoNodes(t *testing.T) {
	cli, began, release := etcdtest.Shared(t).Client(t), make(chan struct{}, 10), make(chan struct{})
	a := serve(t, cli, "a", func(cfg *curator.Config) {
		cfg.Unary = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			began <- struct{}{}
			<-release
			return handler(ctx, req)
		}
	})
	a.becomes(elector.Leading)
	b := serve(t, cli, "b")
	b.becomes(elector.Following)
	first, second, third := a.put(), b.put(), b.put()
	const inFlight = "eldest_service_calls_in_flight"
	a.shows(inFlight+`{way="served"}`, 3)
	b.shows(inFlight+`{way="forwarded"}`, 2)
	close(release)
	for _, done := range []<-chan error{first, second, third} {
		require.NoError(t, <-done)
	}
	_, err := b.kv.Get(etcdtest.Context(t), &kvpb.GetRequest{Key: "nothing of that name"})
	require.Equal(t, codes.NotFound, status.Code(err))

	now := scrape(t, a.registry)
	require.Equal(t, 1.0, now[calls("served", codes.OK)])
	require.Equal(t, 2.0, now[calls("hop", codes.OK)])
	require.Equal(t, 1.0, now[calls("hop", codes.NotFound)])
	require.Equal(t, 3.0, now[`eldest_service_call_seconds{way="hop"}`])
	require.Zero(t, now[inFlight+`{way="served"}`])
	now = scrape(t, b.registry)
	require.Equal(t, 2.0, now[calls("forwarded", codes.OK)])
	require.Equal(t, 1.0, now[calls("forwarded", codes.NotFound)])
	require.Equal(t, 3.0, now[`eldest_service_call_seconds{way="forwarded"}`])
	require.Zero(t, now[inFlight+`{way="forwarded"}`])
	a.addsUp()
	b.addsUp()
	for _, reason := range curator.Refusals() {
		require.Zero(t, now[refusals(reason)])
	}
}

// loaded is a node with a load that the test sets.
type loaded curator.Load

func (l loaded) Load() curator.Load { return curator.Load(l) }

// For every event of a call the labels are the documented ones, and a hop counts only as a hop.
func TestEventsOfCalls(t *testing.T) {
	numbers, registry := metrics.NewService("e"), prometheus.NewPedanticRegistry()
	registry.MustRegister(numbers)
	before := scrape(t, registry)
	told := numbers.Hooks().Answered
	for _, reason := range curator.Refusals() {
		told(curator.CallEvent{Method: "/any/Thing", Way: curator.WayRefused, Code: codes.Unavailable, Refusal: reason, Waited: time.Second})
		told(curator.CallEvent{Method: "/any/Other", Way: curator.WayRefused, Hop: true, Code: codes.Unavailable, Refusal: reason, Waited: time.Second})
	}
	told(curator.CallEvent{Way: curator.WayServed, Code: 99, Took: time.Minute})
	numbers.Attach(loaded{Waiting: 1, Held: 2, Forwarding: 3, Serving: 4})
	now := scrape(t, registry)
	require.Len(t, now, len(before), "there are new labels")
	n := float64(len(curator.Refusals()))
	for _, reason := range curator.Refusals() {
		require.Equal(t, 1.0, now[refusals(reason)], "%v: counted once", reason)
	}
	for name, want := range map[string]float64{
		calls("refused", codes.Unavailable): n, calls("hop", codes.Unavailable): n, calls("served", codes.Unknown): 1,
		"eldest_service_wait_seconds":                     n + 1,
		`eldest_service_call_seconds{way="hop"}`:          n,
		"eldest_service_waiting_calls":                    1,
		"eldest_service_waiting_bytes":                    2,
		`eldest_service_calls_in_flight{way="forwarded"}`: 3,
		`eldest_service_calls_in_flight{way="served"}`:    4,
	} {
		require.Equal(t, want, now[name], name)
	}
}
