package storm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/resolver"
)

// storm is one storm. mu guards everything that changes.
type storm struct {
	t       *testing.T
	binary  string
	ttl     time.Duration
	seed    uint64
	field   *inject.Field
	etcd    *clientv3.Client
	begin   time.Time
	rng     *rand.Rand // of the faults
	workers int
	hold    time.Duration // how long the greedy clients hold a stream

	faults  sync.WaitGroup // of faults in progress
	clients sync.WaitGroup

	mu        sync.Mutex
	nodes     []*serviceNode
	processes []*offspring.Process
	begun     map[string]int
	leaders   map[int64]string
	effects   map[fault]int
	calls     []*call
	attempts  []service.Attempt
	problems  []string
}

// newStorm starts etcd and the nodes, and returns when a node leads.
func newStorm(t *testing.T, ttl time.Duration, seed uint64) *storm {
	t.Helper()
	binary := build(t)
	const election = 500 * time.Millisecond // etcd must keep its leader on a busy machine
	starting, cancel := context.WithTimeout(context.Background(), 3*lifetime)
	defer cancel()
	field, err := inject.Open(starting, etcdtest.Config{Members: 3, Heartbeat: election / 10, Election: election})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, field.Close()) })
	s := &storm{
		t: t, binary: binary, ttl: ttl, seed: seed, hold: 3 * time.Second, field: field, etcd: field.Cluster.Client(t),
		rng: rand.New(rand.NewPCG(seed, 0)), begun: make(map[string]int), leaders: make(map[int64]string), effects: make(map[fault]int),
	}
	for i := range nodes {
		p := &serviceNode{name: fmt.Sprintf("n%d", i+1), address: "127.0.0.1:0"}
		s.nodes = append(s.nodes, p)
		s.start(p, false)
	}
	require.True(t, s.await(lifetime, func() bool { return s.leader() != nil }), "nobody leads: %v", s.problems)
	return s
}

// build builds the command with package witness.
func build(t *testing.T) string {
	t.Helper()
	const kvpb = `"github.com/eldest-io/eldest/curator/kv/kvpb"`
	node, err := filepath.Abs("../../../servicenode.go")
	require.NoError(t, err)
	source, err := os.ReadFile(node)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), kvpb))
	seen := strings.Replace(string(source), kvpb, `kvpb "github.com/eldest-io/eldest/cmd/eldest/lab/witness"`, 1)
	dir := t.TempDir()
	replaced, overlay := filepath.Join(dir, "servicenode.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(replaced, []byte(seen), 0o600))
	text, err := json.Marshal(map[string]map[string]string{"Replace": {node: replaced}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	binary, err := clitest.Build("../../..", dir, "-overlay", overlay)
	require.NoError(t, err)
	return binary
}

// routes returns a client's own connections: to each node, and to the resolvers' targets.
func (s *storm) routes(resolved bool) []route {
	var routes []route
	var addresses []string
	for _, p := range s.nodes {
		routes = append(routes, route{p.name, s.dial(p.address), p.name})
		addresses = append(addresses, p.address)
	}
	if !resolved {
		return routes
	}
	fromEtcd, err := resolver.FromEtcd(resolver.EtcdConfig{KV: s.etcd, Watcher: s.etcd})
	require.NoError(s.t, err)
	fromNodes, err := resolver.FromNodes(resolver.NodesConfig{Addresses: addresses})
	require.NoError(s.t, err)
	for name, builder := range map[string]grpcresolver.Builder{"resolver, of etcd": fromEtcd, "resolver, of nodes": fromNodes} {
		routes = append(routes, route{name, s.dial(resolver.Target(service.Election), grpc.WithResolvers(builder)), ""})
	}
	return routes
}

// dial connects as a client that needs an answer: it reconnects by itself, waits until there is a
// connection, and sends nothing twice.
func (s *storm) dial(target string, options ...grpc.DialOption) *grpc.ClientConn {
	conn, err := grpc.NewClient(target, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))...)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// run makes clients call for so long, with faults or without, waits until the last call has ended,
// and returns everything that happened in etcd.
func (s *storm) run(lasts time.Duration, faulty bool) []service.Change {
	modest, greedy := s.routes(true), s.routes(false)
	s.begin = time.Now()
	s.fill(greedy[0])
	ctx, cancel := context.WithCancel(context.Background())
	s.modest(ctx, modest)
	s.greedy(ctx, greedy)
	if faulty {
		s.applyFaults(lasts)
	} else { // so many attempts that they include each kind
		s.await(lifetime+lasts, func() bool { return time.Since(s.begin) > lasts && len(s.attempts) > 500 })
	}
	cancel()
	s.faults.Wait()
	s.clients.Wait()
	s.checkRoutes(modest)
	s.stopNodes()
	changes, err := service.Changes(context.Background(), s.etcd)
	require.NoError(s.t, err)
	return changes
}

// checkRoutes checks that each route answers after the storm.
func (s *storm) checkRoutes(routes []route) {
	for i, r := range routes {
		a := service.Attempt{Event: "attempt", ID: fmt.Sprintf("calm-%d", i), Node: r.name, Method: service.Append, Key: "calm", Value: r.name}
		ctx, cancel := context.WithTimeout(context.Background(), lifetime)
		if err := a.Send(ctx, r.conn); err != nil {
			s.problem("after the storm, on the route %s: %v", r.name, err)
		}
		cancel()
		s.attempt(a)
	}
}

// stopNodes stops all nodes and waits until they have ended.
func (s *storm) stopNodes() {
	for _, p := range s.nodes {
		s.mu.Lock()
		p.dying = true
		process := p.process
		s.mu.Unlock()
		_ = process.Signal(syscall.SIGTERM) // a process that has ended was judged already
		if !s.await(lifetime, process.Gone) {
			s.problem("%s does not end", p.name)
		}
	}
	for _, p := range s.processes {
		p.End() // all its output has been read then
	}
}

func (s *storm) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *storm) note(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

func (s *storm) attempt(a service.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts = append(s.attempts, a)
}

// at returns the node that listens at an address.
func (s *storm) at(address string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.nodes {
		if p.address == address {
			return p.name
		}
	}
	return ""
}
