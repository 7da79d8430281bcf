package election_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// Row 22, blocking: three candidates win in the order of their registration, with
// rising tokens.
func TestCampaignInOrder(t *testing.T) {
	s := newStage(t)
	first := s.lead(s.candidate("0"))
	var waiting []<-chan outcome
	for i := range 3 {
		waiting = append(waiting, s.campaigning(s.ctx, s.candidate("v")))
		s.queued(i + 2)
	}
	order := s.queue()
	require.Equal(t, order[0], first.Key())
	require.Equal(t, s.election, first.Election())
	leader := first
	for i, next := range waiting {
		require.Empty(t, next)
		require.NoError(t, leader.Resign(s.ctx))
		won := get(s, next)
		require.NoError(t, won.err)
		require.Equal(t, order[i+1], won.l.Key())
		require.Greater(t, won.l.Token(), leader.Token())
		require.True(t, won.l.Holds(0))
		require.False(t, won.l.Holds(lease.MaxTTL))
		require.ErrorIs(t, leader.Err(), eldest.ErrResigned, "the old tenure ended before")
		leader = won.l
	}
}

func TestRegisterThenAwait(t *testing.T) {
	s := newStage(t)
	a, b := s.candidate("a"), s.candidate("b")

	placeA, err := a.Register(s.ctx)
	require.NoError(t, err)
	require.Equal(t, election.Place{Key: a.Key(), Token: placeA.Token, Queue: 1}, placeA)
	placeB, err := b.Register(s.ctx)
	require.NoError(t, err)
	require.Equal(t, election.Place{Key: b.Key(), Token: placeB.Token, Queue: 2, Predecessor: a.Key()}, placeB)
	require.Greater(t, placeB.Token, placeA.Token)

	_, err = b.Register(s.ctx)
	require.ErrorIs(t, err, eldest.ErrCampaigning, "it stands already")
	_, err = b.Campaign(s.ctx)
	require.ErrorIs(t, err, eldest.ErrCampaigning)
	_, err = b.Try(s.ctx)
	require.ErrorIs(t, err, eldest.ErrCampaigning)

	la, err := a.Await(s.ctx)
	require.NoError(t, err)
	require.Equal(t, placeA.Token, la.Token())
	_, err = a.Await(s.ctx)
	require.ErrorIs(t, err, eldest.ErrLeading)
	require.NoError(t, la.Resign(s.ctx))
	lb, err := b.Await(s.ctx)
	require.NoError(t, err)
	require.Equal(t, placeB.Token, lb.Token())
}

func TestAwaitWithoutRegister(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	_, err := c.Await(s.ctx)
	require.ErrorIs(t, err, eldest.ErrNotRegistered)
	require.Empty(t, s.queue())
}

// A candidacy that was lost between Register and Await says so.
func TestAwaitAfterTheKeyWasRemoved(t *testing.T) {
	s := newStage(t)
	ended := make(chan election.EndedEvent, 1)
	c := s.candidate("v", func(cfg *election.Config) {
		cfg.Hooks.Ended = func(e election.EndedEvent) { ended <- e }
	})
	_, err := c.Register(s.ctx)
	require.NoError(t, err)
	s.remove(c.Key())
	require.ErrorIs(t, get(s, ended).Cause, eldest.ErrDeposed)
	_, err = c.Await(s.ctx)
	require.ErrorIs(t, err, eldest.ErrNotRegistered)
	require.ErrorIs(t, err, eldest.ErrDeposed)
	require.NotNil(t, s.lead(c), "and may stand again")
}

func TestTry(t *testing.T) {
	s := newStage(t)
	a, b := s.candidate("a"), s.candidate("b")
	la, err := a.Try(s.ctx)
	require.NoError(t, err)
	require.True(t, la.Holds(0))
	_, err = a.Try(s.ctx)
	require.ErrorIs(t, err, eldest.ErrLeading)
	for range 3 {
		_, err = b.Try(s.ctx)
		require.ErrorIs(t, err, eldest.ErrNotElected)
	}
	require.Equal(t, []string{a.Key()}, s.queue(), "it has not queued")
	require.NoError(t, la.Err())

	require.NoError(t, la.Resign(s.ctx))
	lb, err := b.Try(s.ctx)
	require.NoError(t, err)
	require.Greater(t, lb.Token(), la.Token())
}

func TestTryAmongForeignKeys(t *testing.T) {
	s := newStage(t)
	foreign := keys.Prefix(s.election) + "zzz"
	_, err := s.admin.Put(s.ctx, foreign, "")
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = s.admin.Delete(context.Background(), foreign) })
	reported := make(chan election.ForeignEvent, 10)
	a := s.candidate("a", func(cfg *election.Config) {
		cfg.Hooks.Foreign = func(e election.ForeignEvent) { reported <- e }
	})
	_, err = a.Try(s.ctx)
	require.NoError(t, err, "a foreign key is no candidate")
	require.Equal(t, election.ForeignEvent{Election: s.election, Key: foreign}, get(s, reported))

	b := s.candidate("b")
	_, err = b.Try(s.ctx)
	require.ErrorIs(t, err, eldest.ErrNotElected)
	require.Equal(t, []string{foreign, a.Key()}, s.queue())
}

// A key of one's own that was left over, from a process that died with the lease
// alive, is adopted; behind others it is given up.
func TestTryWithALeftoverOfOnesOwn(t *testing.T) {
	s := newStage(t)
	c := s.candidate("now")
	session := func(key string) clientv3.LeaseID {
		id, err := keys.Parse(s.election, key)
		require.NoError(t, err)
		return clientv3.LeaseID(id)
	}
	left, err := s.admin.Put(s.ctx, c.Key(), "before", clientv3.WithLease(session(c.Key())))
	require.NoError(t, err)
	l, err := c.Try(s.ctx)
	require.NoError(t, err)
	require.Equal(t, eldest.Token(left.Header.Revision), l.Token())
	require.Equal(t, "now", string(s.value(c.Key())))

	other := s.candidate("other")
	_, err = s.admin.Put(s.ctx, other.Key(), "before", clientv3.WithLease(session(other.Key())))
	require.NoError(t, err)
	_, err = other.Try(s.ctx)
	require.ErrorIs(t, err, eldest.ErrNotElected)
	require.Equal(t, []string{c.Key()}, s.queue(), "nothing is left in the queue")
}

// Row 22: a campaign with a time-out is a campaign whose context ends.
func TestCampaignEndsWithItsContext(t *testing.T) {
	s := newStage(t)
	s.lead(s.candidate("a"))
	b := s.candidate("b")
	why := errors.New("had enough")
	ctx, cancel := context.WithCancelCause(s.ctx)
	waiting := s.campaigning(ctx, b)
	s.queued(2)
	cancel(why)
	got := get(s, waiting)
	require.Nil(t, got.l)
	require.ErrorIs(t, got.err, why)
	s.queued(1)

	dead := s.campaigning(ctx, b)
	require.ErrorIs(t, get(s, dead).err, why)
	require.Len(t, s.queue(), 1)

	// Registered under one context, waiting under another.
	_, err := b.Register(s.ctx)
	require.NoError(t, err)
	_, err = b.Await(ctx)
	require.ErrorIs(t, err, why)
	s.queued(1)
}

// The context of a campaign bounds the campaign, not the tenure.
func TestContextOfTheCampaignDoesNotEndTheTenure(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithCancel(s.ctx)
	l, err := s.candidate("a").Campaign(ctx)
	require.NoError(t, err)
	cancel()
	require.NoError(t, l.Proclaim(s.ctx, []byte("b")))
	require.NoError(t, l.Err())
}

// Namespaced clients: the whole life of a candidate in a directory.
func TestCampaignInANamespace(t *testing.T) {
	s := newStage(t)
	in := func(cfg *election.Config) {
		cfg.KV, cfg.Watcher = namespace.NewKV(s.cli, "/prod/"), namespace.NewWatcher(s.cli, "/prod/")
	}
	plain := s.lead(s.candidate("plain"))
	a, b := s.candidate("a", in), s.candidate("b", in)
	la := s.lead(a)
	waiting := s.campaigning(s.ctx, b)
	inside := s.election
	s.election = "/prod/" + inside
	s.queued(2)
	_, err := la.Txn(s.ctx).Then(clientv3.OpPut("data-"+inside, "x")).Commit()
	require.NoError(t, err)
	s.remove("/prod/data-" + inside)
	s.remove("/prod/" + a.Key())
	require.ErrorIs(t, s.over(la), eldest.ErrDeposed)
	won := get(s, waiting)
	require.NoError(t, won.err)
	require.NoError(t, won.l.Resign(s.ctx))
	require.Empty(t, s.queue())
	require.NoError(t, plain.Err())
}
