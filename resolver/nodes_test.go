package resolver_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcresolver "google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/resolver"
)

// pauses is a back-off that keeps what it was asked for, and pauses for next to nothing.
type pauses struct {
	mu       sync.Mutex
	attempts []int
}

func (p *pauses) next(attempt int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts = append(p.attempts, attempt)
	return time.Millisecond
}

func (p *pauses) taken() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.attempts)
}

func fromNodes(t testing.TB, cfg resolver.NodesConfig, nodes ...*node) grpcresolver.Builder {
	t.Helper()
	for _, n := range nodes {
		cfg.Addresses = append(cfg.Addresses, n.address)
	}
	b, err := resolver.FromNodes(cfg)
	require.NoError(t, err)
	return b
}

// quiet is an address that takes connections and says nothing.
func quiet(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

const never = time.Hour // as a time-out of nodes

// settled waits until no node is asked any more for twice the time-out: one that knows may
// have told so in the very moment in which it was given up.
func settled(t testing.TB, timeout time.Duration, nodes ...*node) {
	t.Helper()
	asked := func() (times int64) {
		for _, n := range nodes {
			times += n.asked.Load()
		}
		return times
	}
	limit := etcdtest.Context(t)
	for before := int64(-1); asked() != before; {
		before = asked()
		select {
		case <-time.After(2 * timeout):
		case <-limit.Done():
			require.FailNow(t, "nodes are asked again and again")
		}
	}
}

// Row 49: the leader moves, and the client follows, whichever node tells it, also when
// that one dies.
func TestRequirement49FromNodes(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	nodes := []*node{newNode(t, "a"), newNode(t, "b"), newNode(t, "c")}
	conn := dial(t, election, fromNodes(t, resolver.NodesConfig{Timeout: never}, nodes...))
	token := int64(0)
	lead := func(leader *node) {
		token++
		for _, n := range nodes {
			n.knows(election, leader, token)
		}
		reaches(t, conn, leader)
		for range 20 {
			requireAnswer(t, conn, leader)
		}
	}
	for i := range 9 {
		lead(nodes[i%3])
	}
	open := func() (asked []*node) {
		for _, n := range nodes {
			if n.asking.Load() > 0 {
				asked = append(asked, n)
			}
		}
		return asked
	}
	for len(nodes) > 1 {
		asked := open()
		require.Len(t, asked, 1, "one node is asked at a time")
		asked[0].server.Stop()
		nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n == asked[0] })
		lead(nodes[0])
	}
}

// Dead nodes, silent ones, ones of another kind and of another election are passed
// over, with pauses that grow, and start anew once a node has been of use.
func TestNodesThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	other, good, leader := newNode(t, "other"), newNode(t, "good"), newNode(t, "leader")
	other.knows("another", other, 1)
	for name, useless := range map[string]string{"dead": etcdtest.Nowhere(t), "silent": quiet(t), "of another election": other.address, "of another kind": bare(t), "no address": "nonsense:///x"} {
		t.Run(name, func(t *testing.T) {
			for range 4 { // it begins with any of them
				var p pauses
				c := newClient(t)
				r, err := fromNodes(t, resolver.NodesConfig{Addresses: []string{useless, useless}, Timeout: 100 * time.Millisecond, Backoff: p.next}, good).
					Build(target(t, election), c, plain)
				require.NoError(t, err)
				c.until(func(_ []string, errs []error) bool { return len(errs) >= 4 })
				good.knows(election, leader, 1)
				c.isLedTo(leader)
				r.Close()
				good.wonders(election)
				for i, attempt := range p.taken() {
					require.Equal(t, i, attempt, "no failure is forgotten before a node was of use")
				}
			}
		})
	}
}

var plain = grpcresolver.BuildOptions{DialCreds: insecure.NewCredentials()}

// bare is a gRPC server without the Curator service.
func bare(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, served := grpc.NewServer(), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return listener.Addr().String()
}

// A node that does not know is given up after the time-out, and asked again later; one
// that does not know for a moment is not given up.
func TestNodesThatDoNotKnow(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	a, b := newNode(t, "a"), newNode(t, "b")
	a.wonders(election)
	b.wonders(election)
	const timeout = 300 * time.Millisecond
	c := newClient(t)
	var q pauses // shorter than the time-out, or nobody would be asked for longer than that
	c.build(fromNodes(t, resolver.NodesConfig{Timeout: timeout, Backoff: q.next}, a, b), election)
	c.until(func(_ []string, errs []error) bool {
		told := slices.ContainsFunc(errs, func(err error) bool {
			return errors.Is(err, eldest.ErrNoLeader) && strings.Contains(err.Error(), "too early to say")
		})
		return told && a.asked.Load() >= 2 && b.asked.Load() >= 2
	})
	a.knows(election, a, 1)
	c.isLedTo(a)
	settled(t, timeout, a, b) // one that knows is asked for as long as it does
	etcdtest.Eventually(t, func() bool { return a.asking.Load() == 1 && b.asking.Load() == 0 }, "it is so")

	// From when it stops to know, the time-out runs anew.
	asked := b.asked.Load()
	a.wonders(election)
	etcdtest.Eventually(t, func() bool { return b.asked.Load() > asked }, "it is so")

	p, patient := newNode(t, "p"), newClient(t)
	p.knows(election, a, 1)
	patient.build(fromNodes(t, resolver.NodesConfig{Timeout: etcdtest.Patience}, p), election)
	patient.isLedTo(a)
	for i := range int64(5) {
		p.wonders(election)
		p.knows(election, []*node{b, a}[i%2], i+2)
	}
	patient.until(func(addresses []string, _ []error) bool { return addresses[len(addresses)-1] == b.address })
	require.Equal(t, int64(1), p.asked.Load(), "it is still the same stream")
}

// Tokens never go back: a node that is behind leads nobody astray (G6).
func TestNodesThatAreBehind(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	first, behind := newNode(t, "first"), newNode(t, "behind")
	x, y, z := newNode(t, "x"), newNode(t, "y"), newNode(t, "z")
	first.knows(election, y, 9)
	c := newClient(t)
	c.build(fromNodes(t, resolver.NodesConfig{Timeout: 300 * time.Millisecond}, first, behind), election)
	c.isLedTo(y)
	behind.knows(election, x, 5)
	first.server.Stop()
	asked := behind.asked.Load()
	etcdtest.Eventually(t, func() bool { return behind.asked.Load() >= asked+3 }, "it is given up as one that does not know")
	c.isLedTo(y)
	behind.knows(election, z, 10)
	c.isLedTo(y, z)
}

// A node that tells and hangs up at once, again and again, is no success: the pauses
// grow. One that was of use for a while is.
func TestNodesThatHangUp(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	hasty := newNode(t, "hasty")
	hasty.knows(election, hasty, 1)
	hasty.hangUp()
	var p pauses
	c := newClient(t)
	c.build(fromNodes(t, resolver.NodesConfig{Timeout: never, Backoff: p.next}, hasty), election)
	etcdtest.Eventually(t, func() bool { return len(p.taken()) > 5 }, "it is so")
	for i, attempt := range p.taken() {
		require.Equal(t, i, attempt)
	}

	steady := newNode(t, "steady")
	steady.wonders(election)
	const timeout = 100 * time.Millisecond
	var q pauses
	d := newClient(t)
	d.build(fromNodes(t, resolver.NodesConfig{Timeout: timeout, Backoff: q.next}, steady), election)
	etcdtest.Eventually(t, func() bool { return len(q.taken()) > 2 }, "it is so")
	steady.knows(election, steady, 1)
	d.isLedTo(steady)
	settled(t, timeout, steady)
	failed := len(q.taken())
	steady.hangUp()
	etcdtest.Eventually(t, func() bool { return len(q.taken()) > failed }, "it is so")
	require.Zero(t, q.taken()[failed], "it begins anew")
}

// While no node is up, it is a handful of attempts, not hundreds.
func TestNodesAllDead(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var dials []time.Time
	builder, err := resolver.FromNodes(resolver.NodesConfig{
		Addresses: []string{etcdtest.Nowhere(t), etcdtest.Nowhere(t), etcdtest.Nowhere(t)},
		DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				mu.Lock()
				dials = append(dials, time.Now())
				mu.Unlock()
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			}),
		},
	})
	require.NoError(t, err)
	begun := time.Now()
	c := newClient(t)
	r := c.build(builder, etcdtest.Election(t))
	c.until(func(_ []string, errs []error) bool { return len(errs) >= 7 })
	// Six pauses, each at least half of 25 ms, 50 ms, ... 800 ms.
	require.Greater(t, time.Since(begun), 787*time.Millisecond)
	r.Close()
	mu.Lock()
	defer mu.Unlock()
	require.LessOrEqual(t, len(dials), c.told()+1, "and each is one")
}

// Calls that wait for a leader wait, also while no node answers at all, and those that do
// not are Unavailable, whatever the nodes said.
func TestCallsWaitWhileNoNodeAnswers(t *testing.T) {
	t.Parallel()
	conn := dial(t, etcdtest.Election(t), fromNodes(t, resolver.NodesConfig{Addresses: []string{etcdtest.Nowhere(t)}}))
	_, err := call(etcdtest.Context(t), conn)
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = call(short, conn, grpc.WaitForReady(true))
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
}
