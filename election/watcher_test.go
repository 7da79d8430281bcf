package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// data is a key of the test outside the election's range.
func (s *env) data() string { return "data of " + s.Election }

// seen is what a watch has delivered until its channel was closed.
type seen struct {
	values []string
	err    error // of the last response
}

// rest reads a watch to its end.
func rest(t testing.TB, watch clientv3.WatchChan) seen {
	t.Helper()
	return etcdtest.Take(t, etcdtest.Go(func() (all seen) {
		for resp := range watch {
			for _, event := range resp.Events {
				all.values = append(all.values, string(event.Kv.Value))
			}
			all.err = resp.Err()
		}
		return all
	}), "the end of the watch")
}

// ends requires that a watch delivers nothing more than the end of the tenure, for these reasons.
func ends(t testing.TB, watch clientv3.WatchChan, reasons ...error) {
	t.Helper()
	last := etcdtest.Take(t, watch, "the last response")
	require.Empty(t, last.Events, "delivered after the end of the tenure")
	require.True(t, last.Canceled)
	for _, reason := range append(reasons, eldest.ErrNotLeading) {
		require.ErrorIs(t, last.Err(), reason)
	}
	var op *eldest.OpError
	require.ErrorAs(t, last.Err(), &op)
	require.Equal(t, seen{}, rest(t, watch), "after the last response")
}

// delivers requires that a watch delivers a value next.
func delivers(t testing.TB, watch clientv3.WatchChan, value string) {
	t.Helper()
	resp := etcdtest.Take(t, watch, value)
	require.NoError(t, resp.Err())
	require.Len(t, resp.Events, 1)
	require.Equal(t, value, string(resp.Events[0].Kv.Value))
}

// watches counts the watches of a key that the recorded client has requested.
func (s *env) watches(key string) (n int) {
	for _, call := range s.Rec.Calls("Watch") {
		if string(call.Request.(*etcdserverpb.WatchRequest).GetCreateRequest().GetKey()) == key {
			n++
		}
	}
	return n
}

// During the tenure a guarded watcher is the candidate's watcher: options, progress and errors are
// those of etcd's client.
func TestWatcherDuringTheTenure(t *testing.T) {
	t.Parallel()
	s := &env{etcdtest.NewEnv(t, etcdtest.Start(t, etcdtest.Config{Members: 1}))}
	l := s.lead(s.candidate("v"))
	w := l.Watcher()
	watch := w.Watch(s.Ctx, s.data(), clientv3.WithPrefix(), clientv3.WithCreatedNotify(), clientv3.WithPrevKV())
	require.True(t, get(s, watch).Created)
	s.Put(s.data()+"/1", "a")
	last := s.Put(s.data()+"/1", "b")
	delivers(t, watch, "a")
	resp := get(s, watch)
	require.Equal(t, "a", string(resp.Events[0].PrevKv.Value))
	require.NoError(t, w.RequestProgress(s.Ctx))
	progress := get(s, watch)
	require.True(t, progress.IsProgressNotify())

	require.NoError(t, etcdtest.Err(s.Admin.Compact(s.Ctx, last)))
	require.Equal(t, seen{err: rpctypes.ErrCompacted}, rest(t, w.Watch(s.Ctx, s.data(), clientv3.WithRev(1))))

	ctx, cancel := context.WithCancel(s.Ctx)
	own := w.Watch(ctx, s.data())
	cancel()
	require.Equal(t, seen{}, rest(t, own), "it ended with its context")
	require.ErrorIs(t, rest(t, w.Watch(nil, s.data())).err, eldest.ErrInvalid) //nolint:staticcheck // on purpose
	require.ErrorIs(t, w.RequestProgress(nil), eldest.ErrInvalid)              //nolint:staticcheck // on purpose

	require.NoError(t, l.Err())
	s.Put(s.data()+"/1", "c")
	delivers(t, watch, "c")
}

// After a pause of the process no timer has ended the tenure yet, and an event arrives that is
// younger than the tenure: it is not delivered.
//
// Fails if responses are not checked against the clock.
func TestWatcherAfterAPause(t *testing.T) {
	clock := etcdtest.NewClock()
	x := newTenure(t, func(cfg *lease.Config) { cfg.Clock = clock })
	watch := x.l.Watcher().Watch(x.Ctx, x.data())
	x.Put(x.data(), "in time")
	delivers(t, watch, "in time")
	clock.Jump(time.Hour)
	x.Put(x.data(), "late")
	ends(t, watch, eldest.ErrSessionLost)
}

// A tenure that is suspended has ended for its watches. They do not continue when it does.
func TestWatcherOfASuspendedTenure(t *testing.T) {
	s := newEnv(t)
	a, l := newSuspendable(t)
	watch := l.Watcher().Watch(s.Ctx, s.data())
	a.suspend(t, l)
	s.Put(s.data(), "late")
	ends(t, watch, eldest.ErrSuspended)
	resumed := a.Lead(t)
	require.Equal(t, l.Token(), resumed.Token())
	ends(t, l.Watcher().Watch(s.Ctx, s.data()), eldest.ErrSuspended)
	watch = resumed.Watcher().Watch(s.Ctx, s.data())
	s.Put(s.data(), "again")
	delivers(t, watch, "again")
}

// A reader that does not read keeps nothing running, even if its context never ends. What it has
// not received at the end of the tenure, it does not receive.
//
// Fails if the last response waits for the reader.
func TestWatcherWithoutAReader(t *testing.T) {
	x := newTenure(t)
	watch := x.l.Watcher().Watch(context.Background(), x.data())
	for _, value := range []string{"1", "2", "3"} {
		x.Put(x.data(), value)
	}
	x.Until("a response waits", func() bool { return len(watch) == 1 })
	require.NoError(t, x.c.Close(x.Ctx), "it waits for the goroutine")
	require.Len(t, watch, 1)
	ends(t, watch, eldest.ErrClosed)
}

// A watch that etcd has not created yet ends with the tenure.
func TestWatcherWhileEtcdIsUnavailable(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	c, host := s.behind("v", on(session), soon)
	l := s.lead(c)
	host.Hold(etcdtest.BothWays)
	defer host.Mend()
	watch := etcdtest.Go(func() clientv3.WatchChan { return l.Watcher().Watch(context.Background(), s.data()) })
	s.Until("the request is on its way", func() bool { return host.Stats().Held.Inbound > 0 })
	require.Empty(t, watch, "there is no watch")
	require.NoError(t, session.Close(s.Ctx))
	ends(t, get(s, watch), eldest.ErrClosed)
}

// Close of a guarded watcher ends its watches, and no other of the same client.
func TestWatcherClose(t *testing.T) {
	x := newTenure(t)
	one, two := x.l.Watcher(), x.l.Watcher()
	closed, goesOn, plain := one.Watch(x.Ctx, x.data()), two.Watch(x.Ctx, x.data()), x.Client.Watch(x.Ctx, x.data())
	require.NoError(t, one.Close())
	require.NoError(t, one.Close(), "again")
	for _, watch := range []clientv3.WatchChan{closed, one.Watch(x.Ctx, x.data()+" late")} {
		err := rest(t, watch).err
		require.ErrorIs(t, err, eldest.ErrClosed)
		require.NotErrorIs(t, err, eldest.ErrNotLeading)
	}
	require.ErrorIs(t, one.RequestProgress(x.Ctx), eldest.ErrClosed)
	x.Put(x.data(), "more")
	delivers(t, goesOn, "more")
	delivers(t, plain, "more")
	require.Zero(t, x.watches(x.data()+" late"), "a closed watcher sends nothing")
	require.NoError(t, x.l.Err())
}
