package txn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// ranges returns the reads of the last transaction, or the last plain read.
func (s *stage) ranges() []*etcdserverpb.RangeRequest {
	s.T.Helper()
	defer s.Rec.Reset()
	calls := s.Rec.Calls()
	require.Len(s.T, calls, 1)
	if read, ok := calls[0].Request.(*etcdserverpb.RangeRequest); ok {
		return []*etcdserverpb.RangeRequest{read}
	}
	var reads []*etcdserverpb.RangeRequest
	for _, op := range calls[0].Request.(*etcdserverpb.TxnRequest).Success {
		reads = append(reads, op.GetRequestRange())
	}
	return reads
}

func TestAheadReadsSingleKeysWhereEveryElderIsKnown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, _ := s.enter("a")
	b, pb := s.enter("b")
	c, pc := s.enter("c")
	s.Rec.Reset()

	// b, a waiter, leaves: a is still older.
	at := s.Remove(b.Key())
	known := pc
	known.Ahead = known.Ahead[1:]
	next, err := queue.Ahead(s.Ctx, s.Client, c, known, at)
	require.NoError(t, err)
	require.True(t, next.Complete)
	require.Len(t, next.Ahead, 1)
	require.Equal(t, a.Key(), next.Ahead[0].Key)
	require.Equal(t, at, next.Revision)
	reads := s.ranges()
	require.Len(t, reads, 2)
	for _, read := range reads {
		require.Empty(t, read.RangeEnd, "a point read, not O(candidates)")
		require.Equal(t, at, read.Revision)
		require.True(t, read.Serializable, "no quorum is asked for what is past")
	}

	// a, the leader, leaves: one point read of c's key proves the win.
	at = s.Remove(a.Key())
	next.Ahead = next.Ahead[1:]
	next, err = queue.Ahead(s.Ctx, s.Client, c, next, at)
	require.NoError(t, err)
	require.True(t, next.First())
	require.Equal(t, at, next.Revision)
	require.Equal(t, pc.Token, next.Token)
	reads = s.ranges()
	require.Len(t, reads, 1)
	require.Equal(t, c.Key(), string(reads[0].Key))
	require.Empty(t, reads[0].RangeEnd)
	require.NotEqual(t, pb.Token, next.Token)
}

// An elder's key that was put again by hand has a new create revision, and is younger.
func TestAheadTellsLivesOfAKeyApart(t *testing.T) {
	s := newStage(t)
	a, _ := s.enter("a")
	c, pc := s.enter("c")
	s.Remove(a.Key())
	require.NoError(t, etcdtest.Err(queue.Enter(s.Ctx, s.Client, a)))
	next, err := queue.Ahead(s.Ctx, s.Client, c, pc, 0)
	require.NoError(t, err)
	require.True(t, next.First())
}

func TestAheadWithoutTheOwnKeyIsAnError(t *testing.T) {
	for _, known := range []bool{true, false} {
		for _, back := range []bool{true, false} {
			t.Run(fmt.Sprintf("known %v, back %v", known, back), func(t *testing.T) {
				s := newStage(t)
				s.enter("a")
				e, p := s.enter("own")
				p.Complete = known
				s.Remove(e.Key())
				if back {
					require.NoError(t, etcdtest.Err(queue.Enter(s.Ctx, s.Client, e)))
				}
				require.ErrorIs(t, etcdtest.Err(queue.Ahead(s.Ctx, s.Client, e, p, 0)), eldest.ErrDeposed)
			})
		}
	}
}

// The result is as of the revision at which the predecessor's key was deleted: later changes do not
// count.
func TestAheadIsPinned(t *testing.T) {
	s := newStage(t)
	a, _ := s.enter("a")
	b, _ := s.enter("b")
	c, pc := s.enter("c")
	at := s.Remove(b.Key())
	s.Remove(a.Key())

	for _, complete := range []bool{true, false} {
		p := pc
		p.Ahead, p.Complete = pc.Ahead[1:], complete
		then, err := queue.Ahead(s.Ctx, s.Client, c, p, at)
		require.NoError(t, err)
		require.Len(t, then.Ahead, 1, "at that revision a stood")
		require.Equal(t, at, then.Revision)
		now, err := queue.Ahead(s.Ctx, s.Client, c, p, 0)
		require.NoError(t, err)
		require.True(t, now.First())
	}

	// The later deletion of c's key does not count either.
	s.Remove(c.Key())
	p := pc
	p.Ahead = pc.Ahead[1:]
	require.NoError(t, etcdtest.Err(queue.Ahead(s.Ctx, s.Client, c, p, at)))
	require.ErrorIs(t, etcdtest.Err(queue.Ahead(s.Ctx, s.Client, c, p, 0)), eldest.ErrDeposed)
}

func TestAheadOfARevisionThatCannotBeReadIsRepeatable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cluster := etcdtest.Start(t, etcdtest.Config{}) // its own cluster, whose history is compacted
	s.Client, s.Admin = cluster.Client(t), cluster.Client(t)
	s.enter("a")
	e, p := s.enter("own")
	old := p.Revision
	s.Put("elsewhere", "1")
	newest, err := cluster.Compact(s.Ctx)
	require.NoError(t, err)

	for _, complete := range []bool{true, false} {
		p.Complete = complete
		_, err = queue.Ahead(s.Ctx, s.Client, e, p, old)
		require.True(t, txn.Repeatable(err), "compacted: %v", err)
		_, err = queue.Ahead(s.Ctx, s.Client, e, p, newest+1000)
		require.True(t, txn.Repeatable(err), "in the future: %v", err)
		require.NoError(t, etcdtest.Err(queue.Ahead(s.Ctx, s.Client, e, p, 0)))
	}
	require.False(t, txn.Repeatable(nil))
	require.False(t, txn.Repeatable(eldest.ErrDeposed))
}

// More foreign keys than one reply contains, between the candidate and its elder.
func TestAheadSearchesBelowForeignKeys(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, pa := s.enter("a")
	var foreign []string
	for i := range 40 {
		key := fmt.Sprintf("%sforeign-%02d", keys.Prefix(s.Election), i)
		foreign = append(foreign, key)
		s.Put(key, "")
	}
	t.Cleanup(func() {
		for _, key := range foreign {
			s.Remove(key)
		}
	})
	e, p := s.enter("own")
	require.False(t, p.Complete)
	require.Empty(t, p.Ahead, "seventeen of them fill the answer")
	require.True(t, p.Unknown())
	require.False(t, p.First())
	for _, at := range []int64{0, p.Revision} {
		next, err := queue.Ahead(s.Ctx, s.Client, e, p, at)
		require.NoError(t, err)
		require.Equal(t, []eldest.Token{pa.Token}, tokens(next.Ahead))
		require.True(t, next.Complete)
	}
	s.Remove(a.Key())
	next, err := queue.Ahead(s.Ctx, s.Client, e, p, 0)
	require.NoError(t, err)
	require.True(t, next.First())
}
