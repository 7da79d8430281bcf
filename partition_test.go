package eldest_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// node is a program that always wants to lead: whatever ends its candidacy, it
// opens a new session and stands again. It talks to one member only.
type node struct {
	name     string
	client   *clientv3.Client
	observer *observe.Observer
	tenure   atomic.Pointer[election.Leadership]
	wins     chan *election.Leadership
}

func newNode(t *testing.T, c *etcdtest.Cluster, member int, name string) *node {
	cli := c.ClientTo(t, member)
	return &node{
		name: fmt.Sprintf("node%d", member), client: cli, observer: watchElection(t, cli, name),
		wins: make(chan *election.Leadership, 16),
	}
}

func (n *node) run(ctx context.Context, name string) {
	for ctx.Err() == nil {
		if l := n.stand(ctx, name); l != nil {
			n.tenure.Store(l)
			n.wins <- l
		}
	}
}

// stand is one session: it returns a tenure as soon as there is one, and whatever
// comes after that is done when the next call is.
func (n *node) stand(ctx context.Context, name string) *election.Leadership {
	if l := n.tenure.Load(); l != nil {
		select {
		case <-l.Done():
		case <-ctx.Done():
		}
	}
	s, err := lease.Open(ctx, lease.Config{Lease: n.client, TTL: 4 * time.Second})
	if err != nil {
		return nil // only ctx ends it
	}
	c, err := election.New(election.Config{
		Election: name, Session: s, KV: n.client, Watcher: n.client, Value: []byte(n.name), Timeout: time.Second,
	})
	if err != nil {
		return nil
	}
	// A session serves one tenure here. Nothing waits for its clean-up.
	leave := func() {
		late, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
		defer cancel()
		_ = c.Close(late)
		_ = s.Close(late)
	}
	l, err := c.Campaign(ctx)
	if err != nil {
		go leave()
		return nil
	}
	context.AfterFunc(l.Context(), leave)
	return l
}

func (n *node) leads() bool {
	l := n.tenure.Load()
	return l != nil && l.Err() == nil
}

// follows reports whether the node knows of a leader other than itself.
func (n *node) follows(other *election.Leadership) bool {
	state := n.observer.State()
	return !n.leads() && state.Kind == eldest.Led && state.Leader.Key == other.Key() && state.Leader.Token == other.Token()
}

// sample looks at all nodes each millisecond until ctx ends, and returns the
// moments at which two of them led.
func sample(ctx context.Context, nodes []*node) (samples int, twice []string) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return samples, twice
		case <-tick.C:
		}
		samples++
		var first *node
		for _, n := range nodes {
			switch {
			case !n.leads():
			case first == nil:
				first = n
			case first.leads():
				// Asked again, because a hand-over may fall between two looks.
				twice = append(twice, fmt.Sprintf("%v: %s and %s", time.Now(), first.name, n.name))
			}
		}
	}
}

// Three participants, each on its own member of three. The member of the leader is
// cut off, and is etcd's own leader at that. Fails when the old leader is one for
// longer than its lease, when it reports itself as following somebody it cannot
// know of, and when it does not come back.
func TestPartition(t *testing.T) {
	t.Parallel()
	// Neither etcd's leader nor ours changes only because the machine is busy.
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond})
	name := etcdtest.Election(t)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	reader := c.Client(t)
	nodes := make([]*node, 3)
	for i := range nodes {
		nodes[i] = newNode(t, c, i, name)
		running.Go(func() { nodes[i].run(ctx, name) })
		etcdtest.Eventually(t, func() bool { return len(queueOf(t, reader, name)) == i+1 }, "node %d is in the queue", i)
	}
	var samples int
	var twice []string
	sampling := make(chan struct{})
	sampled, done := context.WithCancel(context.Background())
	go func() {
		defer close(sampling)
		samples, twice = sample(sampled, nodes)
	}()
	defer func() {
		done()
		<-sampling
		require.Empty(t, twice, "two led at the same time")
		require.Greater(t, samples, 1000)
		t.Logf("%d samples", samples)
	}()

	first := etcdtest.Take(t, nodes[0].wins, "the first leader")
	require.NoError(t, c.MoveLeader(etcdtest.Context(t), 0))
	for _, n := range nodes[1:] {
		etcdtest.Eventually(t, func() bool { return n.follows(first) }, "%s follows", n.name)
	}

	// Cut: the majority elects the next one.
	require.NoError(t, c.Cut(0))
	second := etcdtest.Take(t, nodes[1].wins, "a leader on the majority's side")
	require.Error(t, first.Err(), "the old leading context outlives the successor's win")
	require.False(t, first.Holds(0))
	require.ErrorIs(t, first.Err(), eldest.ErrSessionLost)
	now, err := observe.LeaderOf(etcdtest.Context(t), nodes[2].client, name)
	require.NoError(t, err)
	require.Equal(t, second.Key(), now.Key)
	require.NotEqual(t, first.Key(), now.Key)
	require.Greater(t, now.Token, first.Token())
	etcdtest.Eventually(t, func() bool { return nodes[2].follows(second) }, "the third follows the new leader")
	etcdtest.Eventually(t, func() bool { return nodes[0].observer.State().Kind == eldest.Unknown }, "the old leader knows that it does not know")
	require.Error(t, nodes[0].observer.State().Reason)
	require.False(t, nodes[0].leads())

	// Heal: it stands again, at the end of the queue, and follows.
	require.NoError(t, c.Mend(0))
	etcdtest.Eventually(t, func() bool { return nodes[0].follows(second) }, "the old leader follows the new one")
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, reader, name)) == 3 }, "the old leader stands again")
	require.NoError(t, second.Err(), "healing cost the new leader its tenure")

	// And back: the second is cut off, the third leads, and hands over to the first.
	require.NoError(t, c.Cut(1))
	third := etcdtest.Take(t, nodes[2].wins, "the third")
	require.Error(t, second.Err())
	require.NoError(t, c.Mend(1))
	for _, n := range nodes[:2] {
		etcdtest.Eventually(t, func() bool { return n.follows(third) }, "%s follows the third", n.name)
	}
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, reader, name)) == 3 }, "the second stands again")
	require.NoError(t, third.Resign(etcdtest.Context(t)))
	again := etcdtest.Take(t, nodes[0].wins, "the first one again")
	require.Greater(t, again.Token(), third.Token())
	require.NotEqual(t, first.Key(), again.Key())
	for _, n := range nodes[1:] {
		etcdtest.Eventually(t, func() bool { return n.follows(again) }, "%s follows the first one again", n.name)
	}
}
