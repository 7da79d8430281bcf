package transfer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/mailbox"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
	"github.com/eldest-io/eldest/txn"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is an election of the test's own on the shared etcd.
type stage struct {
	t        *testing.T
	ctx      context.Context
	election string
	cluster  *etcdtest.Cluster
	cli      *clientv3.Client
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ctx := etcdtest.Context(t)
	c := etcdtest.Shared(t)
	return &stage{t: t, ctx: ctx, election: strings.ReplaceAll(t.Name(), "/", "|"), cluster: c, cli: c.Client(t)}
}

// node is a candidate that campaigns, and, if it takes part, serves.
type node struct {
	s         *stage
	session   *lease.Session
	candidate *election.Candidate
	place     election.Place
	won       chan *election.Leadership
	ended     chan error // Await returned an error
	served    chan error
	stop      context.CancelFunc // of Serve
}

// change alters how a node stands and how it can be asked.
type change func(*election.Config, *transfer.Config)

// deaf nodes take no part.
func deaf(_ *election.Config, t *transfer.Config) { t.Candidate = nil }

// stand makes a node and puts it at the end of the queue.
func (s *stage) stand(changes ...change) *node {
	s.t.Helper()
	n := &node{s: s, won: make(chan *election.Leadership, 1), ended: make(chan error, 1), served: make(chan error, 1)}
	var err error
	n.session, err = lease.Open(s.ctx, lease.Config{Lease: s.cli, TTL: 60 * time.Second})
	require.NoError(s.t, err)
	e := election.Config{Election: s.election, Session: n.session, KV: s.cli, Watcher: s.cli}
	asked := transfer.Config{Candidate: &election.Candidate{}, Session: n.session, KV: s.cli, Watcher: s.cli}
	for _, change := range changes {
		change(&e, &asked)
	}
	n.candidate, err = election.New(e)
	require.NoError(s.t, err)
	n.place, err = n.candidate.Register(s.ctx)
	require.NoError(s.t, err)
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		l, err := n.candidate.Await(context.Background())
		if err != nil {
			n.ended <- err
			return
		}
		n.won <- l
	}()
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	if asked.Candidate != nil {
		asked.Candidate = n.candidate
		go func() { n.served <- transfer.Serve(ctx, asked) }()
		s.until("the mailbox", func() bool { return s.member(n.Key()).Asks })
	} else {
		n.served <- nil
	}
	s.t.Cleanup(func() {
		late, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
		defer cancel()
		stop()
		n.served <- <-n.served
		_ = n.candidate.Close(late)
		_ = n.session.Close(late)
		<-waiting
	})
	return n
}

// Key returns the node's key.
func (n *node) Key() string { return n.candidate.Key() }

// leads waits until the node has won.
func (n *node) leads() *election.Leadership {
	n.s.t.Helper()
	l := get(n.s, n.won)
	n.won <- l
	return l
}

// silent gives the node a mailbox that nobody reads, as a process that is stopped has.
func (n *node) silent() {
	n.s.t.Helper()
	_, err := mailbox.Post(n.s.ctx, n.s.cli, txn.Entry{
		Election: n.s.election, Lease: int64(n.session.ID()), Value: fmt.Appendf(nil, `{"v":1,"token":%d}`, n.place.Token),
	}, n.place.Token)
	require.NoError(n.s.t, err)
}

// resigns has the node resign when its leading context has ended, as Lead does.
func (n *node) resigns() {
	l := n.leads()
	n.s.t.Cleanup(func() { <-l.Done() })
	go func() {
		<-l.Done()
		_ = l.Resign(context.Background())
	}()
}

// member returns what a survey says of a key.
func (s *stage) member(key string) transfer.Member {
	s.t.Helper()
	q, err := transfer.Survey(s.ctx, s.cli, s.election)
	require.NoError(s.t, err)
	for _, m := range q.Members {
		if m.Key == key {
			return m
		}
	}
	return transfer.Member{}
}

// queue returns the keys of all who stand, oldest first.
func (s *stage) queue() []string {
	s.t.Helper()
	q, err := transfer.Survey(s.ctx, s.cli, s.election)
	require.NoError(s.t, err)
	var queue []string
	for _, m := range q.Members {
		queue = append(queue, m.Key)
	}
	return queue
}

// until waits for a condition.
func (s *stage) until(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, etcdtest.Patience, 2*time.Millisecond, what)
}

// get receives, or fails the test at its deadline.
func get[T any](s *stage, from <-chan T) T {
	s.t.Helper()
	select {
	case v := <-from:
		return v
	case <-s.ctx.Done():
		require.FailNow(s.t, "nothing came before the test's deadline")
		panic("not reached")
	}
}
