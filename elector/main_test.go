package elector_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// config returns the config of a node with the given id on a client.
func config(name, id string, cli *clientv3.Client, change ...func(*elector.Config)) elector.Config {
	cfg := elector.Config{
		Election: name, NodeID: id, Address: id + ":1", Source: elector.Always(elector.Client(cli)),
		Session:  lease.Options{TTL: time.Minute}, // a busy machine does not lose the lease
		Observer: observe.Options{Timeout: 250 * time.Millisecond, WatchCheck: 500 * time.Millisecond},
		Leave:    etcdtest.Patience / 3, // a slow etcd does not leave a key behind
	}
	cfg.Candidate.Timeout = 500 * time.Millisecond
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

// inMemory runs a test in virtual time, with a client of an etcd in memory.
func inMemory(t *testing.T, test func(t *testing.T, cli *clientv3.Client, link *memetcd.Link, etcd *memetcd.Etcd)) {
	synctest.Test(t, func(t *testing.T) {
		etcd := memetcd.New()
		cli, link := etcd.Client()
		t.Cleanup(func() { _ = cli.Close(); etcd.Close() })
		test(t, cli, link, etcd)
	})
}

// virtual makes the deadlines of a session follow virtual time.
func virtual(cfg *elector.Config) { cfg.Session.Clock = lease.Monotonic() }

func ttl(d time.Duration) func(*elector.Config) {
	return func(cfg *elector.Config) { cfg.Session.TTL = d }
}

// node is an elector that runs, with the tenures of its lead function.
type node struct {
	*elector.Elector
	id   string
	won  chan *elector.Leadership
	stop context.CancelFunc
	done chan error
}

// run starts a node, which is stopped with the test. Its lead function leads until its
// context ends.
func run(t testing.TB, cfg elector.Config) *node {
	t.Helper()
	n := &node{id: cfg.NodeID, won: make(chan *elector.Leadership, 1024)}
	n.runWith(t, cfg, func(ctx context.Context, l *elector.Leadership) error {
		n.won <- l
		<-ctx.Done()
		return nil
	})
	return n
}

// runWith starts the node with the given lead function.
func (n *node) runWith(t testing.TB, cfg elector.Config, lead func(context.Context, *elector.Leadership) error) {
	t.Helper()
	e, err := elector.New(cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	n.Elector, n.stop, n.done = e, stop, make(chan error, 1)
	go func() { n.done <- e.Run(ctx, lead) }()
	t.Cleanup(func() { _ = n.end(t) })
}

// end stops the node, waits for it, and returns what Run returned.
func (n *node) end(t testing.TB) error {
	t.Helper()
	n.stop()
	err := etcdtest.Take(t, n.done, "the end of Run")
	n.done <- err
	return err
}

// becomes waits until the node has a role.
func (n *node) becomes(t testing.TB, role elector.Role) elector.Status {
	t.Helper()
	s, err := n.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == role })
	require.NoError(t, err, "%s is not %v: %v", n.id, role, n.Status())
	return s
}

// follows waits until the node follows another one.
func (n *node) follows(t testing.TB, id string) elector.Leader {
	t.Helper()
	s, err := n.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool {
		l, ok := s.Leader()
		return ok && l.NodeID == id
	})
	require.NoError(t, err, "%s does not follow %s: %v", n.id, id, n.Status())
	l, _ := s.Leader()
	return l
}

// queueOf reads the queue's keys in their order.
func queueOf(t testing.TB, cli *clientv3.Client, name string) []observe.Entry {
	t.Helper()
	queue, err := observe.Queue(etcdtest.Context(t), cli, nil, name)
	require.NoError(t, err)
	return queue
}

// nodesOf names the nodes of a queue.
func nodesOf(t testing.TB, queue []observe.Entry) []string {
	t.Helper()
	ids := []string{}
	for _, entry := range queue {
		id, err := identity.Protobuf{}.Decode(entry.Value)
		require.NoError(t, err)
		ids = append(ids, id.NodeID)
	}
	return ids
}
