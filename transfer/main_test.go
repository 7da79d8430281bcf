package transfer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/requestkey"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
	"github.com/eldest-io/eldest/txn"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is the environment of etcdtest, with nodes.
type stage struct{ *etcdtest.Env }

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{etcdtest.NewEnv(t, etcdtest.Shared(t))}
}

// node is a candidate that campaigns, and calls Serve if it takes part.
type node struct {
	s         *stage
	session   *lease.Session
	candidate *election.Candidate
	place     election.Position
	won       chan *election.Leadership
	ended     chan error // Await returned an error
	served    chan error
	stop      context.CancelFunc // of Serve
}

// change changes the configs of a node.
type change func(*election.Config, *transfer.Config)

// deaf has a node take no part.
func deaf(_ *election.Config, t *transfer.Config) { t.Candidate = nil }

// stand makes a node and registers it at the end of the queue.
func (s *stage) stand(changes ...change) *node {
	s.T.Helper()
	n := &node{s: s, won: make(chan *election.Leadership, 1), ended: make(chan error, 1), served: make(chan error, 1)}
	var err error
	n.session, err = lease.Open(s.Ctx, lease.Config{Lease: s.Client, Options: lease.Options{TTL: 60 * time.Second}})
	require.NoError(s.T, err)
	e := election.Config{Election: s.Election, Session: n.session, KV: s.Client, Watcher: s.Client}
	asked := transfer.Config{Candidate: &election.Candidate{}, Session: n.session, KV: s.Client, Watcher: s.Client}
	for _, change := range changes {
		change(&e, &asked)
	}
	n.candidate, err = election.New(e)
	require.NoError(s.T, err)
	n.place, err = n.candidate.Register(s.Ctx)
	require.NoError(s.T, err)
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
		s.Until("the request key", func() bool { return s.member(n.Key()).TakesPart })
	} else {
		n.served <- nil
	}
	s.T.Cleanup(func() {
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
	n.s.T.Helper()
	l := get(n.s, n.won)
	n.won <- l
	return l
}

// silent writes the node's request key without Serve, as if its process were stopped.
func (n *node) silent() {
	n.s.T.Helper()
	_, err := requestkey.Write(n.s.Ctx, n.s.Client, txn.Entry{
		Election: n.s.Election, Lease: int64(n.session.ID()), Value: fmt.Appendf(nil, `{"v":1,"token":%d}`, n.place.Token),
	}, n.place.Token)
	require.NoError(n.s.T, err)
}

// resigns has the node resign when its leading context has ended, as Lead does.
func (n *node) resigns() {
	l := n.leads()
	n.s.T.Cleanup(func() { <-l.Done() })
	go func() {
		<-l.Done()
		_ = l.Resign(context.Background())
	}()
}

// member returns the member with a key in a survey.
func (s *stage) member(key string) transfer.Member {
	s.T.Helper()
	q, err := transfer.Survey(s.Ctx, s.Client, s.Election)
	require.NoError(s.T, err)
	for _, m := range q.Members {
		if m.Key == key {
			return m
		}
	}
	return transfer.Member{}
}

// queue returns the keys of all candidates, oldest first.
func (s *stage) queue() []string {
	s.T.Helper()
	q, err := transfer.Survey(s.Ctx, s.Client, s.Election)
	require.NoError(s.T, err)
	var queue []string
	for _, m := range q.Members {
		queue = append(queue, m.Key)
	}
	return queue
}

// get receives, or fails the test.
func get[T any](s *stage, from <-chan T) T {
	s.T.Helper()
	return etcdtest.Take(s.T, from, "what the test waits for")
}
