package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/txn"
)

// leader is a candidate at the head of the queue, and its guard.
func (s *stage) leader() (txn.Entry, txn.Guard) {
	s.t.Helper()
	e, p := s.enter("leader")
	require.True(s.t, p.First())
	s.rec.Reset()
	return e, txn.Guard{Election: s.election, Key: e.Key(), Token: p.Token}
}

// data is a key of the leader's, outside the election's range and removed with the
// test.
func (s *stage) data(name string) string {
	key := "data-" + s.election + "-" + name
	s.t.Cleanup(func() { _, _ = s.admin.Delete(context.Background(), key) })
	return key
}

func TestGuardLetsTheTenurePass(t *testing.T) {
	s := newStage(t)
	_, g := s.leader()
	x, y := s.data("x"), s.data("y")
	s.put(x, "old")

	resp, err := g.Txn(s.ctx, s.kv).
		If(clientv3.Compare(clientv3.Value(x), "=", "old")).
		Then(clientv3.OpPut(y, "1"), clientv3.OpGet(x), clientv3.OpDelete(x)).
		Else(clientv3.OpPut(y, "2")).
		Commit()
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.methods(), "one request")
	require.True(t, resp.Succeeded)
	require.Len(t, resp.Responses, 3)
	require.Equal(t, "old", string(resp.Responses[1].GetResponseRange().Kvs[0].Value))
	require.Equal(t, int64(1), resp.Responses[2].GetResponseDeleteRange().Deleted)
	require.NotNil(t, resp.Header)
	require.Positive(t, resp.Header.Revision)
	require.NotZero(t, resp.Header.ClusterId)
	value, _ := s.value(y)
	require.Equal(t, "1", value)
	_, absent := s.value(x)
	require.True(t, absent)
}

// Row 18, first two of three: the caller's own compare failing is an answer, lost
// leadership is an error.
func TestGuardKeepsTheMeaningOfTheCallersCompares(t *testing.T) {
	s := newStage(t)
	_, g := s.leader()
	x := s.data("x")
	commit := func() (*clientv3.TxnResponse, error) {
		return g.Txn(s.ctx, s.kv).
			If(clientv3.Compare(clientv3.Version(x), ">", 0)).
			Then(clientv3.OpPut(x, "then")).
			Else(clientv3.OpPut(x, "else"), clientv3.OpGet(x)).
			Commit()
	}
	resp, err := commit()
	require.NoError(t, err)
	require.False(t, resp.Succeeded, "the caller's compare, not the guard's")
	require.Len(t, resp.Responses, 2)
	value, _ := s.value(x)
	require.Equal(t, "else", value)

	resp, err = commit()
	require.NoError(t, err)
	require.True(t, resp.Succeeded)
	value, _ = s.value(x)
	require.Equal(t, "then", value)

	s.remove(g.Key)
	for range 2 {
		resp, err = commit()
		var refused *txn.GuardError
		require.ErrorAs(t, err, &refused)
		require.Nil(t, resp)
	}
}

// Row 16: every kind of access is refused after the tenure, in the same words, and
// nothing is applied.
func TestGuardRefusesEveryAccess(t *testing.T) {
	s := newStage(t)
	e, g := s.leader()
	x, fresh := s.data("x"), s.data("fresh")
	s.put(x, "old")
	// Deposed, and the key is in another life: a compare of its value or of its
	// being there would let everything pass.
	s.remove(g.Key)
	again, err := queue.Enter(s.ctx, s.kv, e)
	require.NoError(t, err)
	before := s.revision()
	s.rec.Reset()

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
			_, err := g.Txn(ctx, s.kv).If(clientv3.Compare(clientv3.Version(x), "=", 99)).Else(clientv3.OpPut(x, "new")).Commit()
			return err
		},
		"empty": func(ctx context.Context) error {
			_, err := g.Txn(ctx, s.kv).Commit()
			return err
		},
	}
	for name, access := range accesses {
		t.Run(name, func(t *testing.T) {
			err := access(s.ctx)
			require.Equal(t, []string{"Txn"}, s.methods())
			var refused *txn.GuardError
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, eldest.ErrDeposed)
			require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			require.Equal(t, g.Key, refused.Key)
			require.Equal(t, s.election, refused.Election)
			require.Equal(t, g.Token, refused.Wanted)
			require.Equal(t, again.Token, refused.Found)
			require.Equal(t, before, refused.Revision)
			require.ErrorContains(t, err, g.Key)
			require.Equal(t, before, s.revision(), "nothing was applied")
		})
	}
	s.remove(g.Key)
	_, err = g.KV(s.kv).Get(s.ctx, x)
	var refused *txn.GuardError
	require.ErrorAs(t, err, &refused)
	require.Zero(t, refused.Found, "the key is gone")
}

func do(ctx context.Context, s *stage, g txn.Guard, op clientv3.Op) error {
	_, err := g.KV(s.kv).Do(ctx, op)
	return err
}

func (s *stage) revision() int64 {
	s.t.Helper()
	resp, err := s.admin.Get(s.ctx, "revision", clientv3.WithCountOnly())
	require.NoError(s.t, err)
	return resp.Header.Revision
}

// What etcd itself refuses is certain, typed, and leaves nothing behind.
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
			_, err := g.Txn(s.ctx, s.kv).Then(tc.ops...).Commit()
			require.ErrorIs(t, err, tc.want)
			require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, eldest.ErrDeposed)
			var op *eldest.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, g.Key, op.Key)
			_, absent := s.value(x)
			require.True(t, absent)
		})
	}
	t.Run("127 operations fit", func(t *testing.T) {
		_, err := g.Txn(s.ctx, s.kv).Then(puts(127)...).Commit()
		require.NoError(t, err)
	})
}

// Bad input: a typed error, and nothing is sent.
func TestGuardRefusesBadInputBeforeSending(t *testing.T) {
	s := newStage(t)
	e, g := s.leader()
	x := s.data("x")
	ended := errors.New("why the caller gave up")
	gone, cancel := context.WithCancelCause(s.ctx)
	cancel(ended)
	alive := errors.New("the tenure has ended here")
	locally := g
	locally.Alive = func() error { return alive }
	sibling := s.election + "/ffff"
	in := func(ops ...clientv3.Op) clientv3.Op { return clientv3.OpTxn(nil, ops, nil) }
	inElse := func(ops ...clientv3.Op) clientv3.Op { return clientv3.OpTxn(nil, nil, ops) }

	for name, tc := range map[string]struct {
		guard txn.Guard
		ctx   context.Context
		op    clientv3.Op
		want  error
	}{
		"zero guard":               {txn.Guard{}, s.ctx, clientv3.OpPut(x, "1"), eldest.ErrInvalid},
		"no token":                 {txn.Guard{Election: g.Election, Key: g.Key}, s.ctx, clientv3.OpPut(x, "1"), eldest.ErrInvalid},
		"no key":                   {txn.Guard{Election: g.Election, Token: 7}, s.ctx, clientv3.OpPut(x, "1"), eldest.ErrInvalid},
		"nil context":              {g, nil, clientv3.OpPut(x, "1"), eldest.ErrInvalid},
		"ended context":            {g, gone, clientv3.OpPut(x, "1"), ended},
		"ended here":               {locally, s.ctx, clientv3.OpPut(x, "1"), alive},
		"put on the own key":       {g, s.ctx, clientv3.OpPut(e.Key(), "1"), eldest.ErrInvalid},
		"put of a candidate":       {g, s.ctx, clientv3.OpPut(sibling, "1"), eldest.ErrInvalid},
		"put at the range's start": {g, s.ctx, clientv3.OpPut(s.election+"/", "1"), eldest.ErrInvalid},
		"delete of the own key":    {g, s.ctx, clientv3.OpDelete(e.Key()), eldest.ErrInvalid},
		"delete of the prefix":     {g, s.ctx, clientv3.OpDelete(s.election+"/", clientv3.WithPrefix()), eldest.ErrInvalid},
		"delete of a wider prefix": {g, s.ctx, clientv3.OpDelete(s.election[:4], clientv3.WithPrefix()), eldest.ErrInvalid},
		"delete of everything":     {g, s.ctx, clientv3.OpDelete("", clientv3.WithPrefix()), eldest.ErrInvalid},
		"delete from a key on":     {g, s.ctx, clientv3.OpDelete("A", clientv3.WithFromKey()), eldest.ErrInvalid},
		"delete up into the range": {g, s.ctx, clientv3.OpDelete("A", clientv3.WithRange(s.election+"/0")), eldest.ErrInvalid},
		"in a transaction":         {g, s.ctx, in(clientv3.OpGet(x), clientv3.OpDelete(e.Key())), eldest.ErrInvalid},
		"in its else":              {g, s.ctx, inElse(clientv3.OpPut(e.Key(), "1")), eldest.ErrInvalid},
		"nested twice":             {g, s.ctx, in(inElse(in(clientv3.OpDelete(e.Key())))), eldest.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s.rec.Reset()
			before := s.revision()
			_, err := tc.guard.KV(s.kv).Do(tc.ctx, tc.op)
			require.ErrorIs(t, err, tc.want)
			var op *eldest.OpError
			require.ErrorAs(t, err, &op)
			require.Contains(t, err.Error(), "guarded operation")
			if tc.guard.Key != "" {
				require.ErrorContains(t, err, tc.guard.Key)
			}
			require.Zero(t, s.rec.Count(), "nothing was sent")
			require.Equal(t, before, s.revision())
		})
	}

	// Beside the range nothing is refused.
	for name, op := range map[string]clientv3.Op{
		"just below":       clientv3.OpDelete(s.election + "."),
		"just above":       clientv3.OpDelete(s.election + "0"),
		"up to the range":  clientv3.OpDelete(s.election, clientv3.WithRange(s.election+"/")),
		"reading it":       clientv3.OpGet(s.election+"/", clientv3.WithPrefix()),
		"an empty range":   clientv3.OpDelete(s.election+"/b", clientv3.WithRange(s.election+"/a")),
		"another election": clientv3.OpPut(s.data("election")+"/ffff", "1"),
	} {
		if _, err := g.KV(s.kv).Do(s.ctx, op); name != "an empty range" {
			require.NoError(t, err, name)
		}
	}
	_, err := s.admin.Delete(s.ctx, s.data("election")+"/ffff")
	require.NoError(t, err)
	_, absent := s.value(e.Key())
	require.False(t, absent)
}

// The bare compare, for transactions built by hand.
func TestGuardCompare(t *testing.T) {
	s := newStage(t)
	_, g := s.leader()
	x := s.data("x")
	commit := func() bool {
		resp, err := s.kv.Txn(s.ctx).If(g.Compare()).Then(clientv3.OpPut(x, "1")).Commit()
		require.NoError(t, err)
		return resp.Succeeded
	}
	require.True(t, commit())
	s.remove(g.Key)
	require.False(t, commit())
}
