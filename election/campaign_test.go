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
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

func TestRegisterThenAwait(t *testing.T) {
	s := newStage(t)
	a, b := s.candidate("a"), s.candidate("b")

	placeA, err := a.Register(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, election.Place{Key: a.Key(), Token: placeA.Token, Queue: 1}, placeA)
	placeB, err := b.Register(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, election.Place{Key: b.Key(), Token: placeB.Token, Queue: 2, Predecessor: a.Key()}, placeB)
	require.Greater(t, placeB.Token, placeA.Token)

	require.ErrorIs(t, etcdtest.Err(b.Register(s.Ctx)), eldest.ErrCampaigning, "it stands already")
	require.ErrorIs(t, etcdtest.Err(b.Campaign(s.Ctx)), eldest.ErrCampaigning)
	require.ErrorIs(t, etcdtest.Err(b.Try(s.Ctx)), eldest.ErrCampaigning)

	la, err := a.Await(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, placeA.Token, la.Token())
	require.ErrorIs(t, etcdtest.Err(a.Await(s.Ctx)), eldest.ErrLeading)
	require.NoError(t, la.Resign(s.Ctx))
	lb, err := b.Await(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, placeB.Token, lb.Token())
}

// A candidacy that was lost between Register and Await says so.
func TestAwaitAfterTheKeyWasRemoved(t *testing.T) {
	s := newStage(t)
	ended := make(chan election.EndedEvent, 1)
	c := s.candidate("v", func(cfg *election.Config) {
		cfg.Hooks.Ended = func(e election.EndedEvent) { ended <- e }
	})
	require.NoError(t, etcdtest.Err(c.Register(s.Ctx)))
	s.Remove(c.Key())
	require.ErrorIs(t, get(s, ended).Cause, eldest.ErrDeposed)
	_, err := c.Await(s.Ctx)
	require.ErrorIs(t, err, eldest.ErrNotRegistered)
	require.ErrorIs(t, err, eldest.ErrDeposed)
	require.NotNil(t, s.lead(c), "and may stand again")
}

func TestTry(t *testing.T) {
	s := newStage(t)
	a, b := s.candidate("a"), s.candidate("b")
	la, err := a.Try(s.Ctx)
	require.NoError(t, err)
	require.True(t, la.Holds(0))
	require.ErrorIs(t, etcdtest.Err(a.Try(s.Ctx)), eldest.ErrLeading)
	for range 3 {
		require.ErrorIs(t, etcdtest.Err(b.Try(s.Ctx)), eldest.ErrNotElected)
	}
	require.Equal(t, []string{a.Key()}, s.Queue(), "it has not queued")
	require.NoError(t, la.Err())

	require.NoError(t, la.Resign(s.Ctx))
	lb, err := b.Try(s.Ctx)
	require.NoError(t, err)
	require.Greater(t, lb.Token(), la.Token())
}

// A key of one's own that was left over, from a process that died with the lease
// alive, is adopted; behind others it is given up.
func TestTryWithALeftoverOfOnesOwn(t *testing.T) {
	s := newStage(t)
	c := s.candidate("now")
	session := func(key string) clientv3.LeaseID {
		id, err := keys.Parse(s.Election, key)
		require.NoError(t, err)
		return clientv3.LeaseID(id)
	}
	left, err := s.Admin.Put(s.Ctx, c.Key(), "before", clientv3.WithLease(session(c.Key())))
	require.NoError(t, err)
	l, err := c.Try(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, eldest.Token(left.Header.Revision), l.Token())
	require.Equal(t, "now", s.value(c.Key()))

	other := s.candidate("other")
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, other.Key(), "before", clientv3.WithLease(session(other.Key())))))
	require.ErrorIs(t, etcdtest.Err(other.Try(s.Ctx)), eldest.ErrNotElected)
	require.Equal(t, []string{c.Key()}, s.Queue(), "nothing is left in the queue")
}

// Row 22: a campaign with a time-out is a campaign whose context ends.
func TestCampaignEndsWithItsContext(t *testing.T) {
	s := newStage(t)
	s.lead(s.candidate("a"))
	b := s.candidate("b")
	why := errors.New("had enough")
	ctx, cancel := context.WithCancelCause(s.Ctx)
	waiting := s.campaigning(ctx, b)
	s.queued(2)
	cancel(why)
	got := get(s, waiting)
	require.Nil(t, got.l)
	require.ErrorIs(t, got.err, why)
	s.queued(1)

	dead := s.campaigning(ctx, b)
	require.ErrorIs(t, get(s, dead).err, why)
	require.Len(t, s.Queue(), 1)

	// Registered under one context, waiting under another.
	require.NoError(t, etcdtest.Err(b.Register(s.Ctx)))
	require.ErrorIs(t, etcdtest.Err(b.Await(ctx)), why)
	s.queued(1)
}

// The context of a campaign bounds the campaign, not the tenure.
func TestContextOfTheCampaignDoesNotEndTheTenure(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithCancel(s.Ctx)
	l, err := s.candidate("a").Campaign(ctx)
	require.NoError(t, err)
	cancel()
	require.NoError(t, l.Proclaim(s.Ctx, []byte("b")))
	require.NoError(t, l.Err())
}

// Namespaced clients: the whole life of a candidate in a directory.
func TestCampaignInANamespace(t *testing.T) {
	s := newStage(t)
	in := func(cfg *election.Config) {
		cfg.KV, cfg.Watcher = namespace.NewKV(s.Client, "/prod/"), namespace.NewWatcher(s.Client, "/prod/")
	}
	plain := s.lead(s.candidate("plain"))
	a, b := s.candidate("a", in), s.candidate("b", in)
	la := s.lead(a)
	waiting := s.campaigning(s.Ctx, b)
	inside := s.Election
	s.Election = "/prod/" + inside
	s.queued(2)
	_, err := la.Txn(s.Ctx).Then(clientv3.OpPut("data-"+inside, "x")).Commit()
	require.NoError(t, err)
	s.Remove("/prod/data-" + inside)
	s.Remove("/prod/" + a.Key())
	require.ErrorIs(t, s.over(la), eldest.ErrDeposed)
	won := get(s, waiting)
	require.NoError(t, won.err)
	require.NoError(t, won.l.Resign(s.Ctx))
	require.Empty(t, s.Queue())
	require.NoError(t, plain.Err())
}
