package loop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// hooked is a KV with a hook before each transaction.
type hooked struct {
	clientv3.KV
	before func()
}

func (h *hooked) Txn(ctx context.Context) clientv3.Txn {
	if h.before != nil {
		h.before()
	}
	return h.KV.Txn(ctx)
}

type stand struct {
	*testing.T
	cli     *clientv3.Client
	kv      *hooked
	session *Session
	user    *User
	c       *Candidate
	lease   int64
}

func stage(t *testing.T, shared bool) *stand {
	cli := etcdtest.Shared(t).Client(t)
	g, err := cli.Grant(t.Context(), 60)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	st := &stand{T: t, cli: cli, kv: &hooked{KV: cli}, lease: int64(g.ID)}
	st.session = NewSession(ctx, int64(g.ID), Heartbeats{}, func() {})
	t.Cleanup(func() { cancel(); st.session.End(); _ = st.session.Wait(context.Background()) })
	st.user = &User{
		KV: st.kv, Queue: txn.ByCreateRevision{}, Entry: txn.Entry{Election: t.Name(), Lease: int64(g.ID), Value: []byte("a")},
		Source: &watch.Source{KV: cli, Watcher: cli, Backoff: retry.Default(), Timeout: 2 * time.Second, WatchCheck: 5 * time.Second},
		Policy: func(string) retryrpc.Policy {
			return retryrpc.Policy{Client: cli, Timeout: 2 * time.Second, Backoff: retry.Default()}
		},
		Shared: shared, Tell: func(Step) {},
	}
	return st
}

func (s *stand) take() {
	s.session.Lock()
	defer s.session.Unlock()
	var err error
	s.c, err = s.session.Take(Name{Key: s.user.Entry.Key()}, s.user)
	require.NoError(s, err)
}

func (s *stand) do(e core.Event) { s.session.Lock(); defer s.session.Unlock(); s.c.Do(e) }

func (s *stand) phase() core.Phase {
	s.session.Lock()
	defer s.session.Unlock()
	return s.c.state.Phase
}

func (s *stand) until(p core.Phase) {
	s.Helper()
	require.Eventually(s, func() bool { return s.phase() == p }, etcdtest.Patience, 5*time.Millisecond, "not %v", p)
}

// A key that a user overwrites without a lease, and that is deleted before it is bound again,
// counts as deleted.
func TestGoneBeforeItIsBoundAgain(t *testing.T) {
	s := stage(t, true)
	s.user.Source.WatchCheck = time.Hour
	s.take()
	s.do(core.Event{Kind: core.Campaign, Want: core.Lead})
	s.until(core.Leading)
	key := s.user.Entry.Key()
	s.kv.before = func() {
		s.kv.before = nil
		require.NoError(t, etcdtest.Err(s.cli.Delete(context.Background(), key)))
	}
	require.NoError(t, etcdtest.Err(s.cli.Put(t.Context(), key, "by hand")))
	s.until(core.Idle)
}

// A registration of unknown outcome is owed with the value with which it was sent.
func TestOwedWithItsValue(t *testing.T) {
	s := stage(t, true)
	s.take()
	sent, answer := make(chan struct{}), make(chan struct{})
	s.user.Queue = slow{sent: sent, answer: answer}
	s.do(core.Event{Kind: core.Campaign, Want: core.Lead})
	<-sent
	s.do(core.Event{Kind: core.Leave, Err: context.Canceled})
	s.session.Lock()
	s.user.Entry.Value = []byte("b") // as compat/concurrency's campaign does
	s.c.Do(core.Event{Kind: core.Campaign, Want: core.Lead})
	s.session.Unlock()
	close(answer)
	require.Eventually(t, func() bool { s.session.Lock(); defer s.session.Unlock(); return len(s.c.shared.owed) > 0 }, etcdtest.Patience, time.Millisecond)
	s.session.Lock()
	defer s.session.Unlock()
	require.Equal(t, map[string]int{"a": 1}, s.c.shared.owed)
}

type slow struct {
	txn.ByCreateRevision
	sent, answer chan struct{}
}

func (q slow) Enter(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Position, error) {
	close(q.sent)
	<-q.answer
	return txn.Position{}, eldest.ErrOutcomeUnknown
}

// back is a queue of an etcd that was restored from a backup after the deletion of the older
// candidate was reported: that candidate exists again, with the same token.
type back struct {
	txn.ByCreateRevision
	elder eldest.Candidate
	times *int
}

func (q back) Ahead(ctx context.Context, kv clientv3.KV, e txn.Entry, p txn.Position, at int64) (txn.Position, error) {
	if *q.times++; *q.times == 1 {
		return txn.Position{Token: p.Token, Revision: int64(p.Token), Ahead: []eldest.Candidate{q.elder}, Complete: true}, nil
	}
	return q.ByCreateRevision.Ahead(ctx, kv, e, p, at)
}

func TestTheSameElderAgain(t *testing.T) {
	s := stage(t, false)
	elder := keys.Candidate(t.Name(), 12345)
	put, err := s.cli.Put(t.Context(), elder, "")
	require.NoError(t, err)
	s.user.Queue = back{elder: eldest.Candidate{Key: elder, Lease: 12345, Token: eldest.Token(put.Header.Revision)}, times: new(int)}
	s.take()
	s.do(core.Event{Kind: core.Campaign, Want: core.Lead})
	s.until(core.Waiting)
	time.Sleep(100 * time.Millisecond) // the watch is in place
	require.NoError(t, etcdtest.Err(s.cli.Delete(t.Context(), elder)))
	// The answer shows the older candidate, which does not exist any more. The watch reports that.
	s.until(core.Leading)
}

// A key whose watch has ended counts as deleted, or cannot be relied on any more. Only the end of the
// client does not depose the candidate.
func TestOwnGone(t *testing.T) {
	user := &User{Source: &watch.Source{}}
	require.Equal(t, core.Event{Kind: core.KeyDeleted, Revision: 7}, ownGone(user, 7, nil))
	for end, want := range map[error]struct {
		reason error
		text   string
	}{
		eldest.ErrClosed:             {eldest.ErrClosed, "the etcd client"},
		watch.ErrOverwritten:         {eldest.ErrDeposed, "another lease"},
		rpctypes.ErrPermissionDenied: {eldest.ErrDeposed, "cannot be watched: " + rpctypes.ErrPermissionDenied.Error()},
	} {
		e := ownGone(user, 7, end)
		require.Equal(t, core.KeyUnsafe, e.Kind, "%v", end)
		require.ErrorIs(t, e.Err, want.reason)
		require.ErrorContains(t, e.Err, want.text)
	}
}
