package watch_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/watch"
)

func (s *stage) gone(ctx context.Context, l watch.Life) <-chan outcome {
	return start(func() outcome { return gone(ctx, s.Source, l) })
}

func with(lease int64, kv *mvccpb.KeyValue) *mvccpb.KeyValue {
	kv.Lease = lease
	return kv
}

// TestGoneTable: the life of "k" with token 5, bound to lease 7 if the lease counts.
func TestGoneTable(t *testing.T) {
	for name, tc := range map[string]struct {
		lease    int64            // to which the key must stay bound
		snapshot *mvccpb.KeyValue // nil: absent
		event    *clientv3.Event  // nil: none is needed
		want     outcome
	}{
		"absent at once":              {0, nil, nil, outcome{revision: 10}},
		"another life at once":        {0, kv("k", 8, 8), nil, outcome{revision: 10}},
		"an earlier life at once":     {0, kv("k", 3, 9), nil, outcome{revision: 10}},
		"deleted":                     {0, kv("k", 5, 5), deleteEvent("k", 12), outcome{revision: 12}},
		"deleted after a put":         {0, kv("k", 5, 9), deleteEvent("k", 12), outcome{revision: 12}},
		"created anew":                {0, kv("k", 5, 5), putEvent(kv("k", 13, 13)), outcome{revision: 13}},
		"own lease, deleted":          {7, kv("k", 5, 5), deleteEvent("k", 12), outcome{revision: 12}},
		"own lease, created anew":     {7, kv("k", 5, 5), putEvent(kv("k", 13, 13)), outcome{revision: 13}},
		"overwritten at once":         {7, with(8, kv("k", 5, 9)), nil, outcome{10, watch.ErrOverwritten}},
		"unbound at once":             {7, with(0, kv("k", 5, 9)), nil, outcome{10, watch.ErrOverwritten}},
		"overwritten":                 {7, kv("k", 5, 5), putEvent(with(8, kv("k", 5, 12))), outcome{12, watch.ErrOverwritten}},
		"unbound":                     {7, kv("k", 5, 5), putEvent(with(0, kv("k", 5, 12))), outcome{12, watch.ErrOverwritten}},
		"another's, whatever's lease": {0, with(0, kv("k", 5, 9)), deleteEvent("k", 12), outcome{revision: 12}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				result := s.gone(t.Context(), watch.Life{Key: "k", Token: 5, Lease: tc.lease})
				var kvs []*mvccpb.KeyValue
				if tc.snapshot != nil {
					kvs = append(kvs, tc.snapshot)
				}
				o := s.place(t, 10, kvs...)
				require.Empty(t, o.op.RangeBytes(), "one key, not a range (G5)")
				if tc.event != nil {
					require.Empty(t, result)
					o.send(tc.event)
				}
				require.Equal(t, tc.want, <-result)
			})
		})
	}
}

// TestGoneGoesOn: a new value in the same life does not end it.
func TestGoneGoesOn(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		for _, lease := range []int64{0, 7} {
			result := s.gone(t.Context(), watch.Life{Key: "k", Token: 5, Lease: lease})
			o := s.place(t, 10, kv("k", 5, 9))
			for revision := range int64(5) {
				o.send(putEvent(kv("k", 5, 11+revision)))
			}
			synctest.Wait()
			require.Empty(t, result)
			o.send(deleteEvent("k", 20))
			require.Equal(t, outcome{revision: 20}, <-result)
		}
	})
}

// TestGoneWhileInterrupted: the key is deleted, and created again, while no watch is in place.
func TestGoneWhileInterrupted(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		result := s.gone(t.Context(), watch.Life{Key: "k", Token: 5})
		close(s.place(t, 10, kv("k", 5, 5)).ch)
		synctest.Wait()
		close(s.place(t, 20, kv("k", 5, 15)).ch)
		s.place(t, 40, kv("k", 30, 30))
		require.Equal(t, outcome{revision: 40}, <-result)
	})
}

// The watch stays open until it is stopped, so that the caller's reaction to the report is sent
// first.
func TestUntilKeepsItsWatch(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		on := s.Stream()
		defer on.Release()
		ended := make(chan outcome, 1)
		stop := s.Until(t.Context(), on.Stream, func(f func()) { go f() }, watch.Life{Key: "k", Token: 5},
			func(revision int64, err error) { ended <- outcome{revision, err} })
		o := s.place(t, 10, kv("k", 5, 5))
		o.send(deleteEvent("k", 11))
		require.Equal(t, outcome{revision: 11}, <-ended)
		synctest.Wait()
		require.NoError(t, o.ctx.Err())
		stop()
		synctest.Wait()
		require.Error(t, o.ctx.Err())
	})
}

func TestGoneEndsWithItsContext(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		ctx, cancel := context.WithCancelCause(t.Context())
		result := s.gone(ctx, watch.Life{Key: "k", Token: 5, Lease: 7, Known: 5})
		o := <-s.watches
		require.EqualValues(t, 6, o.op.Rev(), "its own key is watched from the past")
		o.created(10)
		cancel(errEnough)
		require.Equal(t, outcome{0, errEnough}, <-result)
	})
}
