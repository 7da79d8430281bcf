package observe_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// Row 27: no leader, a leader, its values, the next leader, and no leader again.
func TestObserve(t *testing.T) {
	s := newStage(t)
	o := s.observer()
	sub := o.Subscribe()
	state := s.next(sub)
	require.Equal(t, eldest.Nobody, state.Kind)
	require.Positive(t, state.Revision)

	a, rev := s.put(0xa, "a1")
	state = s.next(sub)
	require.Equal(t, eldest.State{
		Kind: eldest.Led, Revision: rev,
		Leader: eldest.Leader{Key: s.key(0xa), Lease: 0xa, Token: a, ModRevision: rev, Value: []byte("a1")},
	}, state)
	require.Equal(t, state, o.State())

	_, rev = s.put(0xa, "a2")
	state = s.next(sub)
	require.Equal(t, "a2", string(state.Leader.Value))
	require.Equal(t, a, state.Leader.Token)
	require.Equal(t, rev, state.Leader.ModRevision)

	b, _ := s.put(0xb, "b1") // a waiter: no new state
	s.put(0xb, "b2")
	s.put(0xc, "c1")
	rev = s.remove(0xa)
	state = s.next(sub)
	require.Equal(t, b, state.Leader.Token, "known from the picture")
	require.Equal(t, "b2", string(state.Leader.Value))
	require.Equal(t, rev, state.Revision)

	s.remove(0xc) // no new state
	s.remove(0xb)
	state = s.next(sub)
	require.Equal(t, eldest.Nobody, state.Kind)

	// The same candidate again is another tenure.
	again, _ := s.put(0xa, "a1")
	require.Greater(t, again, a)
	require.Equal(t, again, s.next(sub).Leader.Token)

	// etcd has received one watch and one snapshot request.
	require.Equal(t, 1, s.Rec.Count("Watch"))
	require.Equal(t, 1, s.Rec.Count("Range"))
	require.Equal(t, 2, s.Rec.Count())
}

// Two keys that were put manually in one transaction have the same token and mod revision. A leader
// whose key is deleted is not reported any more, although its successor has its token.
func TestLeadersWithOneToken(t *testing.T) {
	s := newStage(t)
	o := s.observer(func(cfg *observe.Config) { cfg.Key = s.key(0xc) }) // its position stays the same
	sub, positions := o.Subscribe(), o.Positions()
	s.is(sub, eldest.Nobody)
	_, err := s.Admin.Txn(s.Ctx).Then(clientv3.OpPut(s.key(0xa), "a"), clientv3.OpPut(s.key(0xb), "b")).Commit()
	require.NoError(t, err)
	s.led(sub, 0xa, "a")
	rev := s.remove(0xa)
	state := s.led(sub, 0xb, "b")
	require.Equal(t, rev, state.Revision)
	require.Equal(t, state, o.State())
	for {
		p, err := positions.Next(s.Ctx)
		require.NoError(t, err)
		if p.Leader.Lease == 0xb {
			break
		}
	}
}

// A reader may change the bytes of a value: no other reader of the same state, present or later,
// sees the change.
func TestRegression59ValueIsTheReadersOwn(t *testing.T) {
	s := newStage(t)
	s.put(0xa, "mine")
	o := s.observer()
	one, other := o.Subscribe(), o.Subscribe()
	var readers sync.WaitGroup
	for _, value := range [][]byte{s.led(one, 0xa, "mine").Leader.Value, o.State().Leader.Value} {
		readers.Go(func() { copy(value, "gone") }) // concurrent with the reads below: a data race if they shared the bytes
	}
	require.Equal(t, "mine", string(s.led(other, 0xa, "mine").Leader.Value), "another subscriber's")
	require.Equal(t, "mine", string(o.State().Leader.Value), "the observer's")
	readers.Wait()
	require.Equal(t, "mine", string(s.next(o.Subscribe()).Leader.Value), "a later subscriber's")
	require.Equal(t, "mine", string(o.State().Leader.Value), "the observer's, later")

	// The view still has its own value, and the next leader's value comes from the view.
	s.put(0xb, "next")
	s.remove(0xa)
	copy(s.led(one, 0xb, "next").Leader.Value, "gone")
	s.led(other, 0xb, "next")
}

// The first state of an observer that starts late is the present leader.
func TestLateObserverAndLateSubscriber(t *testing.T) {
	s := newStage(t)
	s.put(0xa, "a")
	s.put(0xb, "b")
	o := s.observer()
	first := o.Subscribe()
	require.Equal(t, int64(0xa), s.next(first).Leader.Lease)
	s.remove(0xa)
	s.led(first, 0xb, "b")

	late := o.Subscribe()
	require.Equal(t, int64(0xb), s.next(late).Leader.Lease, "not what was before")
	require.Equal(t, 1, s.Rec.Count("Watch"))

	// A later read blocks until there is a newer state; a context ends it, and nothing is lost by
	// that.
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(s.Ctx)
	cancel(why)
	require.ErrorIs(t, etcdtest.Err(late.Next(ctx)), why)
	s.put(0xb, "b2")
	s.led(late, 0xb, "b2")
}

func TestStateBeforeTheFirstAnswer(t *testing.T) {
	s := newStage(t)
	host := s.Cluster.Host(t)
	cli := host.Client(t)
	host.Cut()
	o := s.observer(func(cfg *observe.Config) { cfg.KV, cfg.Watcher = cli, cli })
	state := o.State()
	require.Equal(t, eldest.Unknown, state.Kind)
	require.ErrorIs(t, state.Reason, eldest.ErrUnavailable)
}

// The longest time-out, for none, is not taken for one that has passed.
func TestLongestTimeout(t *testing.T) {
	s := newStage(t)
	o := s.observer(func(cfg *observe.Config) { cfg.Timeout = math.MaxInt64 })
	require.Equal(t, eldest.Nobody, s.next(o.Subscribe()).Kind)
}

// Keys that are no candidates are reported, and never become the leader.
func TestForeignKeysAreReportedAndIgnored(t *testing.T) {
	s := newStage(t)
	prefix := keys.Prefix(s.Election)
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, prefix+"before", "")))
	foreign := make(chan string, 100)
	o := s.observer(func(cfg *observe.Config) { cfg.Foreign = func(key string) { foreign <- key } })
	sub := o.Subscribe()
	require.Equal(t, eldest.Nobody, s.next(sub).Kind)
	told := func() string {
		select {
		case key := <-foreign:
			return key
		case <-s.Ctx.Done():
			return "nothing"
		}
	}
	require.Equal(t, prefix+"before", told())
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, prefix+"after/x", "")))
	require.Equal(t, prefix+"after/x", told())
	s.put(7, "v")
	s.led(sub, 7, "v")
	require.Empty(t, foreign)
}

// A Foreign hook that blocks delays only Close.
func TestBlockedForeignHook(t *testing.T) {
	s := newStage(t)
	release := make(chan struct{})
	defer close(release)
	o := s.observer(func(cfg *observe.Config) { cfg.Foreign = func(string) { <-release } })
	sub := o.Subscribe()
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, keys.Prefix(s.Election)+"x", "")))
	s.put(7, "v")
	s.led(sub, 7, "v")
}

func TestClose(t *testing.T) {
	s := newStage(t)
	o := s.observer()
	s.put(1, "v")
	read, fresh, waiting := o.Subscribe(), o.Subscribe(), o.Subscribe()
	s.led(read, 1, "v")
	s.led(waiting, 1, "v")
	blocked := make(chan error, 1)
	go func() {
		_, err := waiting.Next(s.Ctx)
		blocked <- err
	}()
	o.Close()
	require.ErrorIs(t, <-blocked, eldest.ErrClosed)
	require.Equal(t, eldest.Unknown, o.State().Kind, "a closed observer reports no leader (G6)")
	require.ErrorIs(t, o.State().Reason, eldest.ErrClosed)
	require.Zero(t, o.State().Leader)
	for range 2 {
		_, err := read.Next(s.Ctx)
		require.ErrorIs(t, err, eldest.ErrClosed)
		require.ErrorContains(t, err, s.Election)
	}
	state, err := fresh.Next(s.Ctx)
	require.NoError(t, err, "the newest state is still given")
	require.Equal(t, int64(1), state.Leader.Lease)
	require.ErrorIs(t, etcdtest.Err(fresh.Next(s.Ctx)), eldest.ErrClosed)
	require.NoError(t, etcdtest.Err(o.Subscribe().Next(s.Ctx)))
	o.Close()
}

// For any number of subscribers etcd serves one watch and one snapshot.
func TestThousandSubscribers(t *testing.T) {
	s := newStage(t)
	o := s.observer()
	const n = 1000
	var all sync.WaitGroup
	ready := make(chan struct{}, n)
	for range n {
		sub := o.Subscribe()
		all.Go(func() {
			first := true
			for {
				state, err := sub.Next(s.Ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if first {
					ready <- struct{}{}
					first = false
				}
				if string(state.Leader.Value) == "last" {
					return
				}
			}
		})
	}
	for range n {
		select {
		case <-ready:
		case <-s.Ctx.Done():
			require.FailNow(t, "not all of them read")
		}
	}
	for i := range int64(20) {
		s.put(i+1, "v")
	}
	s.put(1, "last")
	all.Wait()
	require.Equal(t, 1, s.Rec.Count("Watch"))
	require.Equal(t, 2, s.Rec.Count())
}
