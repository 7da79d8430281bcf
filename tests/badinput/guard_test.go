package badinput

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// puts returns n writes to different keys.
func puts(n int) (ops []clientv3.Op) {
	for i := range n {
		ops = append(ops, clientv3.OpPut(fmt.Sprint("k", i), ""))
	}
	return ops
}

// guardSection: transactions behind a guard, in and after a tenure.
func guardSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	session := st.session()
	l := st.leader(st.candidate(session))
	begin, end := keys.Range(st.Election)
	over, cancel := context.WithCancel(st.Ctx)
	cancel()

	s := st.section("txn: guarded operations", "`Then` of `Leadership.Txn` unless said otherwise; limits are etcd's defaults (128 operations, 1.5 MiB).")
	s.left = "the tenure continues, and a guarded write of its own is applied"
	s.lives = func(t *testing.T) {
		require.NoError(t, l.Err())
		require.True(t, l.Holds(0))
		require.NoError(t, etcdtest.Err(l.Guard().Txn(st.Ctx, st.Admin).Then(clientv3.OpPut("alive", "")).Commit()))
	}
	op := func(tried string, sent int, want error, ops ...clientv3.Op) {
		s.rows = append(s.rows, row{
			tried: tried, op: "guarded operation", election: st.Election, key: l.Key(), sent: sent, want: []error{want},
			try: func() error { return second(l.Txn(st.Ctx).Then(ops...).Commit()) },
		})
	}
	op("a put of the own key", 0, eldest.ErrInvalid, clientv3.OpPut(l.Key(), "x"))
	op("a delete of the own key", 0, eldest.ErrInvalid, clientv3.OpDelete(l.Key()))
	op("a put of a new key in the election's range", 0, eldest.ErrInvalid, clientv3.OpPut(begin+"notes", "x"))
	op("a delete of the election's range", 0, eldest.ErrInvalid, clientv3.OpDelete(begin, clientv3.WithRange(end)))
	op("a delete of a range that covers it", 0, eldest.ErrInvalid, clientv3.OpDelete("a", clientv3.WithRange("z")))
	op("a delete of all keys", 0, eldest.ErrInvalid, clientv3.OpDelete("\x00", clientv3.WithFromKey()))
	op("a put of the own key in a nested transaction", 0, eldest.ErrInvalid, clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpPut(l.Key(), "x")}))
	op("the same key twice", 1, rpctypes.ErrDuplicateKey, clientv3.OpPut("a", "1"), clientv3.OpPut("a", "2"))
	op("a put of a key and a delete of a range with it", 1, rpctypes.ErrDuplicateKey, clientv3.OpPut("a1", ""), clientv3.OpDelete("a", clientv3.WithRange("b")))
	op("128 operations: with the guard one more than etcd allows", 1, rpctypes.ErrTooManyOps, puts(128)...)
	op("a value of 1.5 MiB", 1, rpctypes.ErrRequestTooLarge, clientv3.OpPut("a", strings.Repeat("x", 3<<19)))
	op("an empty key", 1, rpctypes.ErrEmptyKey, clientv3.OpPut("", ""))
	op("a lease that does not exist", 1, rpctypes.ErrLeaseNotFound, clientv3.OpPut("a", "", clientv3.WithLease(5)))
	op("a read at a revision that is to come", 1, rpctypes.ErrFutureRev, clientv3.OpGet("a", clientv3.WithRev(1<<40)))
	guarded := func(tried string, want error, try func() error) {
		s.rows = append(s.rows, row{tried: tried, op: "guarded operation", election: st.Election, key: l.Key(), want: []error{want}, try: try})
	}
	guarded("no context", eldest.ErrInvalid, func() error { return second(l.Txn(absent).Commit()) })
	guarded("a context that has ended", context.Canceled, func() error { return second(l.Txn(over).Then(puts(1)...).Commit()) })
	guarded("`Guard.Txn`: no client", eldest.ErrInvalid, func() error { return second(l.Guard().Txn(st.Ctx, nil).Commit()) })
	guarded("`Guard.Txn`: a nil `*clientv3.Client`", eldest.ErrInvalid, func() error { return second(l.Guard().Txn(st.Ctx, none).Commit()) })
	guarded("`Guard.KV`: a nil `*clientv3.Client`", eldest.ErrInvalid, func() error { return second(l.Guard().KV(none).Get(st.Ctx, "a")) })
	guarded("`KV`: a put of the own key", eldest.ErrInvalid, func() error { return second(l.KV().Put(st.Ctx, l.Key(), "")) })
	guarded("`KV`: no context", eldest.ErrInvalid, func() error { return second(l.KV().Put(absent, "a", "")) })
	guarded("`KV`: compaction", eldest.ErrInvalid, func() error { return second(l.KV().Compact(st.Ctx, 1)) })
	guarded("`KV`: a streamed read", eldest.ErrInvalid, func() error { return second(l.KV().GetStream(st.Ctx, "a")) })
	watched := func(tried, op string, want error, try func() error) {
		s.rows = append(s.rows, row{tried: tried, op: op, election: st.Election, key: l.Key(), want: []error{want}, try: try})
	}
	watched("`Watcher`: no context", "guarded watch", eldest.ErrInvalid, func() error { return canceled(l.Watcher().Watch(absent, "a")) })
	watched("`Watcher`: a request for progress without a context", "guarded progress request", eldest.ErrInvalid, func() error { return l.Watcher().RequestProgress(absent) })
	closed := l.Watcher()
	require.NoError(t, closed.Close())
	watched("`Watcher`: after its `Close`", "guarded watch", eldest.ErrClosed, func() error { return canceled(closed.Watch(st.Ctx, "a")) })
	s.rows = append(s.rows,
		row{tried: "127 operations", sent: 1, changes: true, try: func() error {
			return second(l.Txn(st.Ctx).Then(puts(127)...).Commit())
		}, result: func() string { return "carried out" }},
		row{tried: "the caller's own compare fails", sent: 1, try: func() error {
			resp, err := l.Txn(st.Ctx).If(clientv3.Compare(clientv3.Version("nobody"), ">", 0)).Then(puts(1)...).Commit()
			if err == nil && resp.Succeeded {
				err = fmt.Errorf("it succeeded")
			}
			return err
		}, result: func() string { return "a response, `Succeeded` is false" }},
		row{tried: "an empty transaction", sent: 1, try: func() error { return second(l.Txn(st.Ctx).Commit()) },
			result: func() string { return "a response" }},
		row{tried: "before leadership: the zero `Guard`", op: "guarded operation", want: errInvalid, try: func() error {
			return second(txn.Guard{}.Txn(st.Ctx, st.Client).Then(puts(1)...).Commit())
		}},
		row{tried: "before leadership: a `Guard` without a token", op: "guarded operation", election: st.Election, key: l.Key(), want: errInvalid, try: func() error {
			return second(txn.Guard{Election: st.Election, Key: l.Key()}.Txn(st.Ctx, st.Client).Then(puts(1)...).Commit())
		}},
		row{tried: "a `Guard` with the token of an earlier tenure", want: []error{eldest.ErrDeposed}, sent: 1, says: []string{"nothing was applied"}, try: func() error {
			g := l.Guard()
			g.Token--
			return second(g.Txn(st.Ctx, st.Client).Then(puts(1)...).Commit())
		}},
	)
	s.rows = append(s.rows, st.afterwards(t)...)
	return s
}

// afterwards returns guarded writes after tenures that ended in different ways.
func (s *stage) afterwards(t *testing.T) (rows []row) {
	ended := func(kind string, end func(c *election.Candidate, l *election.Leadership), change ...func(*election.Config)) *election.Leadership {
		t.Helper()
		session := s.session()
		c := s.candidate(session, append(change, s.variant(kind))...)
		l := s.leader(c)
		end(c, l)
		return l
	}
	after := func(tried string, l *election.Leadership, sent int, want ...error) {
		rows = append(rows, row{tried: tried, want: want, sent: sent, try: func() error { return second(l.Txn(s.Ctx).Then(puts(1)...).Commit()) }})
		if sent == 0 {
			last := &rows[len(rows)-1]
			last.op, last.election, last.key = "guarded operation", l.Election(), l.Key()
		}
	}
	resigned := ended("resigned", func(_ *election.Candidate, l *election.Leadership) {
		require.NoError(t, l.Resign(s.Ctx))
	})
	after("after `Resign`", resigned, 0, eldest.ErrNotLeading, eldest.ErrResigned)
	rows = append(rows, row{
		tried: "`Watcher`: after `Resign`", op: "guarded watch", election: resigned.Election(), key: resigned.Key(),
		want: []error{eldest.ErrNotLeading, eldest.ErrResigned},
		try:  func() error { return canceled(resigned.Watcher().Watch(s.Ctx, "a")) },
	})
	after("after `Candidate.Close`", ended("closed", func(c *election.Candidate, _ *election.Leadership) {
		require.NoError(t, c.Close(s.Ctx))
	}), 0, eldest.ErrNotLeading, eldest.ErrClosed)
	after("after the key was removed by somebody", ended("deposed", func(_ *election.Candidate, l *election.Leadership) {
		require.NoError(t, etcdtest.Err(s.Admin.Delete(s.Ctx, l.Key())))
		<-l.Done()
	}), 0, eldest.ErrNotLeading, eldest.ErrDeposed)
	after("the same, and the leader has not heard of it", ended("unheard", func(_ *election.Candidate, l *election.Leadership) {
		require.NoError(t, etcdtest.Err(s.Admin.Delete(s.Ctx, l.Key())))
		require.NoError(t, l.Err(), "it believes that it leads")
	}, func(cfg *election.Config) { cfg.Watcher = etcdtest.Deaf(cfg.Watcher) }), 1, eldest.ErrDeposed)
	after("after its lease was revoked by somebody", ended("lost", func(_ *election.Candidate, l *election.Leadership) {
		require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, leaseOf(t, l))))
		<-l.Done()
	}), 0, eldest.ErrNotLeading, eldest.ErrDeposed)
	return rows
}

// canceled returns the error of a watch's first response.
func canceled(watch clientv3.WatchChan) error {
	resp := <-watch
	return resp.Err()
}

func leaseOf(t *testing.T, l *election.Leadership) clientv3.LeaseID {
	t.Helper()
	id, err := keys.Parse(l.Election(), l.Key())
	require.NoError(t, err)
	return clientv3.LeaseID(id)
}

// txnSection: the transactions of the protocol, for programs that use them directly.
func txnSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	session := st.session()
	entry := txn.Entry{Election: st.Election, Lease: int64(session.ID())}
	queue := txn.ByCreateRevision{}
	place, err := queue.Enter(st.Ctx, st.Client, entry)
	require.NoError(t, err)
	other := txn.Entry{Election: st.Election, Lease: 5}

	s := st.section("txn: the transactions of the protocol", "For programs that use them directly: they do not check their arguments, and etcd decides.")
	s.left = "the candidate that was queued is still queued"
	s.lives = func(t *testing.T) {
		resp, err := st.Admin.Get(st.Ctx, entry.Key())
		require.NoError(t, err)
		require.Len(t, resp.Kvs, 1)
		require.EqualValues(t, place.Token, resp.Kvs[0].CreateRevision)
	}
	s.rows = append(s.rows,
		row{tried: "`Enter` with a lease that does not exist", sent: 1, want: []error{rpctypes.ErrLeaseNotFound}, try: func() error {
			return second(queue.Enter(st.Ctx, st.Client, other))
		}},
		row{tried: "`Enter` where the key is there already", sent: 1, try: func() error {
			again, err := queue.Enter(st.Ctx, st.Client, entry)
			if err == nil && (!again.Adopted || again.Token != place.Token) {
				err = fmt.Errorf("another life: %+v", again)
			}
			return err
		}, result: func() string { return "the place it has, `Adopted`" }},
		row{tried: "`EnterAlone` while there is another candidate", sent: 1, want: []error{eldest.ErrNotElected}, try: func() error {
			return second(queue.EnterAlone(st.Ctx, st.Client, other))
		}},
		row{tried: "`Proclaim` with a token that is not the key's", sent: 1, want: []error{eldest.ErrDeposed}, try: func() error {
			return second(txn.Proclaim(st.Ctx, st.Client, entry, place.Token+1))
		}},
		row{tried: "`Proclaim` of 1.5 MiB", sent: 1, want: []error{rpctypes.ErrRequestTooLarge}, try: func() error {
			large := entry
			large.Value = make([]byte, 3<<19)
			return second(txn.Proclaim(st.Ctx, st.Client, large, place.Token))
		}},
		row{tried: "`Leave` with a token that is not the key's", sent: 1, try: func() error {
			return txn.Leave(st.Ctx, st.Client, entry.Key(), place.Token+1)
		}},
	)
	return s
}
