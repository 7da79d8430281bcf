package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// leader returns a candidate at the head of the queue, and its guard.
func (s *stage) leader() (txn.Entry, txn.Guard) {
	s.T.Helper()
	e, p := s.enter("leader")
	require.True(s.T, p.First())
	s.Rec.Reset()
	return e, txn.Guard{Election: s.Election, Key: e.Key(), Token: p.Token}
}

// data returns a key of the leader, outside the election's range and removed with the test.
func (s *stage) data(name string) string {
	key := "data-" + s.Election + "-" + name
	s.T.Cleanup(func() { _, _ = s.Admin.Delete(context.Background(), key) })
	return key
}

func TestGuardLetsTheTenurePass(t *testing.T) {
	s := newStage(t)
	_, g := s.leader()
	x, y := s.data("x"), s.data("y")
	s.Put(x, "old")

	resp, err := g.Txn(s.Ctx, s.Client).
		If(clientv3.Compare(clientv3.Value(x), "=", "old")).
		Then(clientv3.OpPut(y, "1"), clientv3.OpGet(x), clientv3.OpDelete(x)).
		Else(clientv3.OpPut(y, "2")).
		Commit()
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.Methods(), "one request")
	require.True(t, resp.Succeeded)
	require.Len(t, resp.Responses, 3)
	require.Equal(t, "old", string(resp.Responses[1].GetResponseRange().Kvs[0].Value))
	require.Equal(t, int64(1), resp.Responses[2].GetResponseDeleteRange().Deleted)
	require.NotNil(t, resp.Header)
	require.Positive(t, resp.Header.Revision)
	require.NotZero(t, resp.Header.ClusterId)
	value, _ := s.Value(y)
	require.Equal(t, "1", value)
	_, absent := s.Value(x)
	require.True(t, absent)
}

// Row 18, first two of three: a false compare of the caller's own is a response, lost leadership is
// an error.
func TestGuardKeepsTheMeaningOfTheCallersCompares(t *testing.T) {
	s := newStage(t)
	_, g := s.leader()
	x := s.data("x")
	commit := func() (*clientv3.TxnResponse, error) {
		return g.Txn(s.Ctx, s.Client).
			If(clientv3.Compare(clientv3.Version(x), ">", 0)).
			Then(clientv3.OpPut(x, "then")).
			Else(clientv3.OpPut(x, "else"), clientv3.OpGet(x)).
			Commit()
	}
	resp, err := commit()
	require.NoError(t, err)
	require.False(t, resp.Succeeded, "the caller's compare, not the guard's")
	require.Len(t, resp.Responses, 2)
	value, _ := s.Value(x)
	require.Equal(t, "else", value)

	resp, err = commit()
	require.NoError(t, err)
	require.True(t, resp.Succeeded)
	value, _ = s.Value(x)
	require.Equal(t, "then", value)

	s.Remove(g.Key)
	for range 2 {
		resp, err = commit()
		var refused *txn.GuardError
		require.ErrorAs(t, err, &refused)
		require.Nil(t, resp)
	}
}

// Row 16: every kind of access is refused after the tenure, with the same error, and nothing is
// applied.
func TestGuardRefusesEveryAccess(t *testing.T) {
	s := newStage(t)
	e, g := s.leader()
	x, fresh := s.data("x"), s.data("fresh")
	s.Put(x, "old")
	// Deposed, and the key has another create revision: a compare of its value or of its existence
	// would be true.
	s.Remove(g.Key)
	again, err := queue.Enter(s.Ctx, s.Client, e)
	require.NoError(t, err)
	before := s.revision()
	s.Rec.Reset()

	accesses := map[string]func(ctx context.Context) error{
		"read":         func(ctx context.Context) error { return do(ctx, s, g, clientv3.OpGet(x)) },
		"range":        func(ctx context.Context) error { return do(ctx, s, g, clientv3.OpGet("", clientv3.WithPrefix())) },
		"write":        func(ctx context.Context) error { return do(ctx, s, g, clientv3.OpPut(x, "new")) },
		"create":       func(ctx context.Context) error { return do(ctx, s, g, clientv3.OpPut(fresh, "new")) },
		"delete":       func(ctx context.Context) error { return do(ctx, s, g, clientv3.OpDelete(x)) },
		"delete range": func(ctx context.Context) error { return do(ctx, s, g, clientv3.OpDelete(x, clientv3.WithPrefix())) },
		"nested": func(ctx context.Context) error {
			return do(ctx, s, g, clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(x, "new")}, nil)}, nil))
		},
		"nested else": func(ctx context.Context) error {
			never := clientv3.Compare(clientv3.Version(x), "=", 99)
			return do(ctx, s, g, clientv3.OpTxn([]clientv3.Cmp{never}, nil, []clientv3.Op{clientv3.OpPut(x, "new")}))
		},
		"else": func(ctx context.Context) error {
			_, err := g.Txn(ctx, s.Client).If(clientv3.Compare(clientv3.Version(x), "=", 99)).Else(clientv3.OpPut(x, "new")).Commit()
			return err
		},
		"empty": func(ctx context.Context) error {
			_, err := g.Txn(ctx, s.Client).Commit()
			return err
		},
	}
	for name, access := range accesses {
		t.Run(name, func(t *testing.T) {
			err := access(s.Ctx)
			require.Equal(t, []string{"Txn"}, s.Methods())
			var refused *txn.GuardError
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, eldest.ErrDeposed)
			require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			require.Equal(t, g.Key, refused.Key)
			require.Equal(t, s.Election, refused.Election)
			require.Equal(t, g.Token, refused.Wanted)
			require.Equal(t, again.Token, refused.Found)
			require.Equal(t, before, refused.Revision)
			require.ErrorContains(t, err, g.Key)
			require.Equal(t, before, s.revision(), "nothing was applied")
		})
	}
	s.Remove(g.Key)
	_, err = g.KV(s.Client).Get(s.Ctx, x)
	var refused *txn.GuardError
	require.ErrorAs(t, err, &refused)
	require.Zero(t, refused.Found, "the key is gone")
}

func do(ctx context.Context, s *stage, g txn.Guard, op clientv3.Op) error {
	_, err := g.KV(s.Client).Do(ctx, op)
	return err
}

func (s *stage) revision() int64 {
	s.T.Helper()
	resp, err := s.Admin.Get(s.Ctx, "revision", clientv3.WithCountOnly())
	require.NoError(s.T, err)
	return resp.Header.Revision
}

// A refusal by etcd itself is definite, typed, and changes nothing.
func TestGuardRefusalsOfTheServerAreDefinite(t *testing.T) {
	s := newStage(t)
	_, g := s.leader()
	x := s.data("x")
	puts := func(n int) (ops []clientv3.Op) {
		for range n {
			ops = append(ops, clientv3.OpGet(x))
		}
		return append(ops[1:], clientv3.OpPut(x, "1"))
	}
	for _, tc := range []struct {
		name string
		ops  []clientv3.Op
		want error
	}{
		{"128 operations, one more than fit behind the guard", puts(128), rpctypes.ErrTooManyOps},
		{"the same key twice", []clientv3.Op{clientv3.OpPut(x, "1"), clientv3.OpPut(x, "2")}, rpctypes.ErrDuplicateKey},
		{"an empty key", []clientv3.Op{clientv3.OpPut(x, "1"), clientv3.OpGet("")}, rpctypes.ErrEmptyKey},
		{"a lease that is gone", []clientv3.Op{clientv3.OpPut(x, "1", clientv3.WithLease(0x7eadbeef))}, rpctypes.ErrLeaseNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := g.Txn(s.Ctx, s.Client).Then(tc.ops...).Commit()
			require.ErrorIs(t, err, tc.want)
			require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, eldest.ErrDeposed)
			var op *eldest.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, g.Key, op.Key)
			_, absent := s.Value(x)
			require.True(t, absent)
		})
	}
	t.Run("127 operations fit", func(t *testing.T) {
		require.NoError(t, etcdtest.Err(g.Txn(s.Ctx, s.Client).Then(puts(127)...).Commit()))
	})
}

// If the context or the tenure has ended, nothing is sent, and the reason is returned.
func TestGuardThatHasEnded(t *testing.T) {
	s := newStage(t)
	_, g := s.leader()
	ended := errors.New("the reason")
	gone, cancel := context.WithCancelCause(s.Ctx)
	cancel(ended)
	locally := g
	locally.Alive = func() error { return ended }
	s.Rec.Reset()
	require.ErrorIs(t, etcdtest.Err(g.KV(s.Client).Put(gone, s.data("x"), "1")), ended)
	require.ErrorIs(t, etcdtest.Err(locally.KV(s.Client).Put(s.Ctx, s.data("x"), "1")), ended)
	require.Zero(t, s.Rec.Count())
}
