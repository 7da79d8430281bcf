package observe_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// follower applies the updates of one loop over Changes, and checks what must hold of each.
type follower struct {
	*stage
	next func() (observe.Update, error, bool)
	stop func()
	// queue has the candidates by key; it is not defined while unknown.
	queue    map[string]eldest.Candidate
	revision int64
	unknown  bool
}

// changes starts a loop, which ends with the test.
func (s *stage) changes(change ...func(*observe.Config)) *follower {
	s.T.Helper()
	cfg := observe.Config{Election: s.Election, KV: s.Client, Watcher: s.Client, Options: observe.Options{Timeout: 15 * time.Second, WatchCheck: -1}}
	for _, f := range change {
		f(&cfg)
	}
	f := &follower{stage: s, queue: map[string]eldest.Candidate{}, unknown: true}
	f.next, f.stop = iter.Pull2(observe.Changes(s.Ctx, cfg))
	s.T.Cleanup(f.stop)
	return f
}

// update returns the next update. Invariant: the updates so far add up to a queue whose leader and
// length are those of the update.
func (f *follower) update() observe.Update {
	f.T.Helper()
	u, err, ok := f.next()
	require.True(f.T, ok)
	require.NoError(f.T, err)
	if u.State.Kind == eldest.Unknown {
		require.ErrorContains(f.T, u.State.Reason, f.Election)
		u.State.Reason = nil
		require.Equal(f.T, observe.Update{}, u)
		f.unknown = true
		return u
	}
	require.Equal(f.T, f.unknown, u.Read)
	require.GreaterOrEqual(f.T, u.State.Revision, f.revision)
	f.revision, f.unknown = u.State.Revision, false
	for _, c := range u.Left {
		require.Equal(f.T, f.queue[c.Key], c, "as it was last reported")
		delete(f.queue, c.Key)
	}
	for _, c := range u.Changed {
		require.Equal(f.T, f.queue[c.Key].Token, c.Token)
		require.Greater(f.T, c.ModRevision, f.queue[c.Key].ModRevision)
		f.queue[c.Key] = c
	}
	for _, c := range u.Registered {
		require.NotContains(f.T, f.queue, c.Key)
		f.queue[c.Key] = c
	}
	require.Len(f.T, f.queue, u.Queue, "the updates do not add up to the queue")
	leader := eldest.Leader{}
	for _, c := range f.queue {
		if leader.Token == 0 || c.Token < leader.Token {
			leader = c
		}
	}
	require.Equal(f.T, leader, u.State.Leader)
	return u
}

// known returns the next update that is not Unknown.
func (f *follower) known() observe.Update {
	f.T.Helper()
	for {
		if u := f.update(); u.State.Kind != eldest.Unknown {
			return u
		}
	}
}

// until returns the updates until the queue has the values, oldest candidate first.
func (f *follower) until(values ...string) {
	f.T.Helper()
	for {
		f.known()
		if slices.Equal(f.values(), values) {
			return
		}
	}
}

// values returns the values in the queue.
func (f *follower) values() (values []string) {
	for _, c := range slices.SortedFunc(maps.Values(f.queue), func(a, b eldest.Candidate) int { return int(a.Token - b.Token) }) {
		values = append(values, string(c.Value))
	}
	return values
}

// said renders an update.
func said(u observe.Update) (lines []string) {
	for _, part := range []struct {
		name       string
		candidates []eldest.Candidate
	}{{"left", u.Left}, {"changed", u.Changed}, {"registered", u.Registered}} {
		for _, c := range part.candidates {
			lines = append(lines, fmt.Sprintf("%s %x %s", part.name, c.Lease, c.Value))
		}
	}
	return lines
}

// Row 84: a loop that starts late receives the queue first, and then each change of any candidate, of
// this election only, with one watch and one read.
func TestChanges(t *testing.T) {
	s := newStage(t)
	s.put(0xb, "b1")
	s.put(0xa, "a1")
	other := keys.Candidate(s.Election+"b", 0xa) // an election whose name begins alike
	inside := keys.Candidate(s.Election+"/in", 0xa)
	s.Put(other, "x")
	s.Put(inside, "x")
	foreign := make(chan string, 10)
	f := s.changes(func(cfg *observe.Config) { cfg.Foreign = func(key string) { foreign <- key } })
	u := f.update()
	require.True(t, u.Read)
	require.Equal(t, []string{"registered b b1", "registered a a1"}, said(u), "in the order of the queue")

	c, revision := s.put(0xc, "c1")
	require.Equal(t, observe.Update{
		State: u.State, Queue: 3,
		Registered: []eldest.Candidate{{Key: s.key(0xc), Lease: 0xc, Token: c, ModRevision: revision, Value: []byte("c1")}},
	}, at(f.update(), u.State.Revision))

	s.Put(other, "y")
	s.Put(inside, "y")
	s.put(0xa, "a2") // a follower's value
	require.Equal(t, []string{"changed a a2"}, said(f.update()))
	s.Remove(other)
	s.remove(0xa) // a follower, by hand
	require.Equal(t, []string{"left a a2"}, said(f.update()))
	s.remove(0xb) // the leader
	u = f.update()
	require.Equal(t, []string{"left b b1"}, said(u))
	require.Equal(t, c, u.State.Leader.Token)
	s.put(0xb, "b2") // it requeues
	require.Equal(t, []string{"registered b b2"}, said(f.update()))

	// All that one transaction changes is one update.
	_, err := s.Admin.Txn(s.Ctx).Then(clientv3.OpDelete(s.key(0xc)), clientv3.OpPut(s.key(0xb), "b3"), clientv3.OpPut(s.key(0xd), "d1")).Commit()
	require.NoError(t, err)
	require.Equal(t, []string{"left c c1", "changed b b3", "registered d d1"}, said(f.update()))
	s.remove(0xb)
	s.remove(0xd)
	f.update()
	require.Equal(t, eldest.Nobody, f.update().State.Kind)

	require.Equal(t, 1, s.Rec.Count("Watch"))
	require.Equal(t, 1, s.Rec.Count("Range"))
	require.Equal(t, 2, s.Rec.Count())
	f.stop()
	require.Equal(t, inside, <-foreign)
}

// at returns an update with another revision.
func at(u observe.Update, revision int64) observe.Update {
	u.State.Revision = revision
	return u
}

// Keys that a lease takes along when it ends are one change for each candidate.
func TestChangesWhenALeaseEnds(t *testing.T) {
	s := newStage(t)
	f := s.changes()
	f.update()
	lease, err := s.Admin.Grant(s.Ctx, 60)
	require.NoError(t, err)
	s.Put(s.key(int64(lease.ID)), "v", clientv3.WithLease(lease.ID))
	f.update()
	_, err = s.Admin.Revoke(s.Ctx, lease.ID)
	require.NoError(t, err)
	require.Equal(t, []string{fmt.Sprintf("left %x v", lease.ID)}, said(f.update()))
}

// While the loop has no connection, the history is compacted. The next known update is the
// difference, and candidates that came and left in between are missing.
func TestChangesAcrossACompaction(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	host := s.Cluster.Host(t)
	cli := host.Client(t)
	for lease, value := range []string{"", "kept", "new value", "leaves", "requeues"} {
		if lease > 0 {
			s.put(int64(lease), value)
		}
	}
	f := s.changes(quick, func(cfg *observe.Config) { cfg.KV, cfg.Watcher = cli, cli })
	require.Len(t, f.known().Registered, 4)
	host.Cut()
	for f.update().State.Kind != eldest.Unknown {
	}
	s.put(2, "newer value")
	s.remove(3)
	s.remove(4)
	s.put(4, "requeued")
	s.put(5, "passes by")
	s.remove(5)
	s.put(6, "comes")
	_, err := s.Cluster.Compact(s.Ctx)
	require.NoError(t, err)
	host.Mend()
	require.Equal(t, []string{"left 3 leaves", "left 4 requeues", "changed 2 newer value", "registered 4 requeued", "registered 6 comes"}, said(f.known()))
	s.put(6, "goes on")
	f.until("kept", "newer value", "requeued", "goes on")
}

// Connections that are reset under writes lose no change that lasts: update checks that the updates
// add up.
func TestChangesUnderResets(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	host := s.Cluster.Host(t)
	cli := host.Client(t)
	f := s.changes(quick, func(cfg *observe.Config) { cfg.KV, cfg.Watcher = cli, cli })
	f.known()
	for i := range int64(60) {
		lease := i%7 + 1
		if i%5 == 4 {
			_, err := s.Admin.Delete(s.Ctx, s.key(lease))
			require.NoError(t, err)
		} else {
			s.put(lease, fmt.Sprint(i))
		}
		if i%10 == 9 {
			host.Reset()
			f.update()
		}
	}
	s.put(9, "last")
	queue, err := observe.Queue(s.Ctx, s.Admin, nil, s.Election)
	require.NoError(t, err)
	var values []string
	for _, entry := range queue {
		values = append(values, string(entry.Value))
	}
	f.until(values...)
}

// The memory of a loop whose body is slow is bounded. What it missed is reported as a difference.
func TestChangesOfASlowBody(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	f := s.changes()
	f.update()
	s.put(1, "first")
	f.update() // its body "runs" while there are 120 times 100 changes
	for round := range 120 {
		ops := make([]clientv3.Op, 100)
		for i := range ops {
			ops[i] = clientv3.OpPut(s.key(int64(100+i)), fmt.Sprint(round))
		}
		_, err := s.Admin.Txn(s.Ctx).Then(ops...).Commit()
		require.NoError(t, err)
	}
	s.Until("all changes have arrived", func() bool { return len(s.Rec.Events()) >= 1+120*100 }) // or the body keeps up
	updates := 0
	for f.update().State.Kind != eldest.Unknown {
		updates++
	}
	require.Less(t, updates, 100, "dropped, and not delivered late")
	u := f.known()
	require.Equal(t, 101, u.Queue)
	require.Equal(t, "119", string(f.queue[s.key(100)].Value))
}

func TestChangesEnd(t *testing.T) {
	s := newStage(t)
	s.put(1, "v")
	cfg := observe.Config{Election: s.Election, KV: s.Client, Watcher: s.Client}
	all := observe.Changes(s.Ctx, cfg)
	for range 2 { // a break, and the iterator is of use again
		for u, err := range all {
			require.NoError(t, err)
			require.Equal(t, 1, u.Queue)
			break
		}
	}

	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(s.Ctx)
	defer cancel(nil)
	errs := 0
	for u, err := range observe.Changes(ctx, cfg) {
		if err != nil {
			require.ErrorIs(t, err, why)
			require.ErrorContains(t, err, s.Election)
			require.Zero(t, u)
			errs++
		}
		cancel(why)
	}
	require.Equal(t, 1, errs, "the last one")

	closed := s.Cluster.Client(t)
	require.NoError(t, closed.Close())
	var last error
	for _, err := range observe.Changes(s.Ctx, observe.Config{Election: s.Election, KV: closed, Watcher: closed}) {
		last = err
	}
	require.ErrorIs(t, last, eldest.ErrClosed)
}

func TestChangesOfBadInput(t *testing.T) {
	s := newStage(t)
	good := observe.Config{Election: s.Election, KV: s.Client, Watcher: s.Client}
	noKV, name := good, good
	noKV.KV, name.Election = nil, "a/b"
	for _, seq := range []iter.Seq2[observe.Update, error]{
		observe.Changes(s.Ctx, noKV), observe.Changes(s.Ctx, name),
		observe.Changes(nil, good), //nolint:staticcheck // bad input
	} {
		n := 0
		for u, err := range seq {
			require.ErrorIs(t, err, eldest.ErrInvalid)
			require.Zero(t, u)
			n++
		}
		require.Equal(t, 1, n)
	}
	require.Zero(t, s.Rec.Count())
}
