package resolver_test

import (
	"context"
	"errors"
	"math"
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

// pauses is a back-off that records its arguments and returns very short pauses.
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

// quiet returns an address that accepts connections and sends nothing.
func quiet(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

const never = time.Hour // as a time-out of nodes

// settled waits until no node has been queried for twice the timeout: a node may have reported the
// leader at the very moment at which it was given up.
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

// Row 49: the leader changes, and the client follows, whichever node reports it, even when that
// node crashes.
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

// Nodes that are down, do not respond, are of another kind or of another election are skipped, with
// pauses that grow and start anew once a node has been useful.
func TestNodesThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	other, leader := newNode(t, "other"), newNode(t, "leader")
	other.knows("another", other, 1)
	for name, useless := range map[string]string{"dead": etcdtest.Nowhere(t), "silent": quiet(t), "of another election": other.address, "of another kind": bare(t), "no address": "nonsense:///x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 3 { // the first node is random
				var p pauses
				c, good := newClient(t), newNode(t, "good")
				good.wonders(election)
				r := c.build(fromNodes(t, resolver.NodesConfig{Addresses: []string{useless, useless}, Timeout: 100 * time.Millisecond, Backoff: p.next}, good), election)
				c.until(func(_ []string, errs []error) bool { return len(errs) >= 4 })
				good.knows(election, leader, 1)
				c.isLedTo(leader)
				r.Close()
				for i, attempt := range p.taken() {
					require.Equal(t, i, attempt, "no failure is forgotten before a node was of use")
				}
			}
		})
	}
}

var plain = grpcresolver.BuildOptions{DialCreds: insecure.NewCredentials()}

// bare starts a gRPC server without the Curator service, and returns its address.
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

// A node that reports no leader is given up after the timeout, and queried again later; a node that
// reports no leader only for a moment is not given up.
func TestNodesThatDoNotKnow(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	a, b := newNode(t, "a"), newNode(t, "b")
	a.wonders(election)
	b.wonders(election)
	const timeout = 300 * time.Millisecond
	c := newClient(t)
	var q pauses // shorter than the timeout, otherwise no node would be queried for longer than that
	c.build(fromNodes(t, resolver.NodesConfig{Timeout: timeout, Backoff: q.next}, a, b), election)
	c.until(func(_ []string, errs []error) bool {
		told := slices.ContainsFunc(errs, func(err error) bool {
			return errors.Is(err, eldest.ErrNoLeader) && strings.Contains(err.Error(), "too early to say")
		})
		return told && a.asked.Load() >= 2 && b.asked.Load() >= 2
	})
	a.knows(election, a, 1)
	c.isLedTo(a)
	settled(t, timeout, a, b) // a node that reports a leader is queried for as long as it does
	etcdtest.Eventually(t, func() bool { return a.asking.Load() == 1 && b.asking.Load() == 0 }, "it is so")

	// When the node stops reporting a leader, the timeout starts anew.
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

// Tokens never decrease: a node that is behind does not change the address (G6).
func TestNodesThatAreBehind(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	first, behind := newNode(t, "first"), newNode(t, "behind")
	x, y, z := newNode(t, "x"), newNode(t, "y"), newNode(t, "z")
	first.knows(election, y, 9)
	c := newClient(t)
	c.build(fromNodes(t, resolver.NodesConfig{Timeout: 300 * time.Millisecond, Backoff: new(pauses).next}, first, behind), election)
	c.isLedTo(y)
	behind.knows(election, x, 5)
	first.server.Stop()
	asked := behind.asked.Load()
	etcdtest.Eventually(t, func() bool { return behind.asked.Load() >= asked+3 }, "it is given up as one that does not know")
	c.isLedTo(y)
	behind.knows(election, z, 10)
	c.isLedTo(y, z)
}

// A node that reports a leader and ends the stream at once, again and again, is no success: the
// pauses grow. A node that was useful for a while is a success.
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

// That also holds if a node may report no leader for longer than any node runs.
//
// The test fails if a node is a success only when it was useful for as long as that.
func TestNodesThatHangUpWithALongTimeout(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	steady := newNode(t, "steady")
	steady.knows(election, steady, 1)
	var p pauses
	c := newClient(t)
	useless := slices.Repeat([]string{bare(t)}, 20) // the first one is random
	c.build(fromNodes(t, resolver.NodesConfig{Timeout: math.MaxInt64, Backoff: p.next, Addresses: useless}, steady), election)
	c.isLedTo(steady)
	time.Sleep(resolver.DefaultTimeout)
	before := len(p.taken())
	steady.hangUp()
	etcdtest.Eventually(t, func() bool { return len(p.taken()) > before }, "it hangs up")
	require.Zero(t, p.taken()[before], "it begins anew")
}

// While no node is up, there are a handful of attempts, not hundreds.
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

// Calls that wait for a leader also wait while no node responds at all, and calls that do not wait
// fail with Unavailable, whatever the nodes' errors were.
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
