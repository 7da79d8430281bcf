package transfer_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/transfer"
)

func TestTo(t *testing.T) {
	for name, tc := range map[string]struct {
		target int
		order  transfer.Order
		want   []int
		moved  int
	}{
		"the first in line":               {1, transfer.Keep, []int{1, 2, 3, 4}, 0},
		"the second, order kept":          {2, transfer.Keep, []int{2, 1, 3, 4}, 3},
		"the third, order kept":           {3, transfer.Keep, []int{3, 1, 2, 4}, 3},
		"the third, passed by":            {3, transfer.PassBy, []int{3, 4, 1, 2}, 2},
		"the last":                        {4, transfer.Keep, []int{4, 1, 2, 3}, 3},
		"the first in line, passed by by": {1, transfer.PassBy, []int{1, 2, 3, 4}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			var nodes []*node
			for range 5 {
				nodes = append(nodes, s.stand())
			}
			l := nodes[0].leads()
			nodes[0].resigns()
			target := nodes[tc.target]
			result, err := transfer.To(s.Ctx, transfer.Client(s.Client), s.Election, target.Key(), transfer.Options{Order: tc.order, Timeout: etcdtest.Patience, Drain: etcdtest.Patience})
			require.NoError(t, err)
			require.True(t, result.Drained)
			require.Equal(t, target.Key(), result.Leader.Key)
			require.Len(t, result.Moved, tc.moved)
			require.ErrorIs(t, l.Err(), eldest.ErrDraining)
			var want []string
			for _, i := range tc.want {
				want = append(want, nodes[i].Key())
			}
			require.Equal(t, want, s.queue())
			q, err := transfer.Survey(s.Ctx, s.Client, s.Election)
			require.NoError(t, err)
			require.True(t, slices.IsSortedFunc(q.Members, func(a, b transfer.Member) int { return cmp.Compare(a.Token, b.Token) }), "tokens go on growing")
			next := target.leads()
			require.Equal(t, target.place.Token, next.Token())
			require.Greater(t, next.Token(), l.Token())
		})
	}
}
