package interop

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// stage is the test environment of one election.
type stage struct {
	name     string
	endpoint string // for etcdctl
	cli      *clientv3.Client
	service  v3electionpb.ElectionClient
}

func newStage(t *testing.T) *stage {
	t.Helper()
	c := etcdtest.Shared(t)
	endpoint := c.Endpoints()[0]
	return &stage{
		name: etcdtest.Election(t), endpoint: endpoint, cli: c.Client(t),
		service: v3electionpb.NewElectionClient(dial(t, endpoint)),
	}
}

// win is how a campaign ended: what the winner knows of itself, or the error.
type win struct {
	key   string
	token eldest.Token
	err   error
}

// contender is a candidate of any kind, whose key is in the queue.
type contender struct {
	key string
	won <-chan win // receives once
	// proclaim changes the leader's value; nil if this kind cannot.
	proclaim func(value string) error
	resign   func() error // as leader
	leave    func()       // as waiter
	// die ends the candidate without a request; see dies.
	die func()
}

// kinds are the candidates that can share an election.
var kinds = map[string]func(t *testing.T, s *stage, value string) *contender{
	"eldest": native, "concurrency": concurrent, "etcdctl": etcdctl, "v3election": v3election,
}

// join adds a candidate of a kind at the end of the queue.
func (s *stage) join(t *testing.T, kind, value string) *contender {
	t.Helper()
	return kinds[kind](t, s, value)
}

// registered waits for the key with a value, which no other candidate has.
func (s *stage) registered(t *testing.T, value string) (key string) {
	t.Helper()
	etcdtest.Eventually(t, func() bool {
		for _, e := range s.queue(t) {
			if string(e.Value) == value {
				key = e.Key
			}
		}
		return key != ""
	}, "%s is in the queue", value)
	return key
}

func (s *stage) queue(t *testing.T) []observe.Entry {
	t.Helper()
	entries, err := observe.Queue(etcdtest.Context(t), s.cli, nil, s.name)
	require.NoError(t, err)
	return entries
}

// wins waits for a candidate's win, and for the same in the eyes of all readers. It returns the
// token.
func (s *stage) wins(t *testing.T, c *contender) eldest.Token {
	t.Helper()
	w := etcdtest.Take(t, c.won, "a win")
	require.NoError(t, w.err)
	require.Equal(t, c.key, w.key)
	ctx := etcdtest.Context(t)
	ours, err := observe.LeaderOf(ctx, s.cli, s.name)
	require.NoError(t, err)
	theirs, err := s.service.Leader(ctx, &v3electionpb.LeaderRequest{Name: []byte(s.name)})
	require.NoError(t, err)
	require.Equal(t, w.token, ours.Token)
	require.EqualValues(t, w.token, theirs.Kv.CreateRevision)
	require.Equal(t, c.key, ours.Key)
	require.Equal(t, c.key, string(theirs.Kv.Key))
	require.Equal(t, ours.Value, theirs.Kv.Value)
	return w.token
}

// writes reports whether etcd accepts a write that is guarded by a leader's key and token.
func (s *stage) writes(t *testing.T, c *contender, token eldest.Token) bool {
	t.Helper()
	resp, err := s.cli.Txn(etcdtest.Context(t)).
		If(clientv3.Compare(clientv3.CreateRevision(c.key), "=", int64(token))).
		Then(clientv3.OpPut(s.name+"-state", fmt.Sprint(token))).Commit()
	require.NoError(t, err)
	return resp.Succeeded
}

// native joins with a candidate of Eldest.
func native(t *testing.T, s *stage, value string) *contender {
	t.Helper()
	p := electiontest.Join(t, s.cli, s.name, func(_ *lease.Config, e *election.Config) {
		e.Value = []byte(value)
	})
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	t.Cleanup(cancel)
	result := p.QueueUnder(ctx, t)
	c := &contender{key: p.Candidate.Key(), leave: cancel, die: p.Session.Abandon}
	var tenure *election.Leadership
	c.won = etcdtest.Go(func() win {
		o := <-result
		if tenure = o.Leadership; tenure == nil {
			return win{err: o.Reason}
		}
		return win{key: tenure.Key(), token: tenure.Token()}
	})
	c.proclaim = func(value string) error { return tenure.Proclaim(etcdtest.Context(t), []byte(value)) }
	c.resign = func() error { return tenure.Resign(etcdtest.Context(t)) }
	return c
}
