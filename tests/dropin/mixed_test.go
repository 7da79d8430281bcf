package dropin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// orders are the orders in which candidates of the two packages arrive.
var orders = [][]face{
	{ours, theirs, ours, theirs},
	{theirs, ours, theirs, ours},
	{theirs, theirs, ours, ours, theirs, ours},
}

func named(order []face) string {
	s := ""
	for _, f := range order {
		s += f.name + " "
	}
	return s
}

// Candidates of both packages campaign in one election: one order, one leader, and all of them see
// the same leader. Only the leader's transactions commit.
func TestMixedElection(t *testing.T) {
	t.Parallel()
	for _, order := range orders {
		t.Run(named(order), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, ours, false)
			var es []election
			var won []<-chan error
			var wanted []string
			for i, f := range order {
				kind := *s
				kind.face = f
				made, e := kind.election()
				won = append(won, kind.queue(s.ctx, made, e, fmt.Sprint(i)))
				es, wanted = append(es, e), append(wanted, s.keyOf(made))
			}
			require.Equal(t, wanted, s.line())
			observers := []<-chan *clientv3.GetResponse{
				es[0].Observe(s.ctx), es[1].Observe(s.ctx),
			}
			last := int64(0)
			for i, leader := range es {
				err, ok := comes(won[i], patience)
				require.True(t, ok, "%s, number %d, does not win", order[i].name, i)
				require.NoError(t, err)
				for j := i + 1; j < len(es); j++ {
					require.Empty(t, won[j], "number %d leads beside number %d", j, i)
				}
				require.Equal(t, wanted[i], leader.Key())
				require.Greater(t, leader.Rev(), last)
				last = leader.Rev()
				resp, err := s.cli.Txn(s.ctx).
					If(clientv3.Compare(clientv3.CreateRevision(leader.Key()), "=", leader.Rev())).
					Then(clientv3.OpPut(s.name+"-led-by", fmt.Sprint(i))).Commit()
				require.NoError(t, err)
				require.True(t, resp.Succeeded)
				now, err := leader.Leader(s.ctx)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(i), string(now.Kvs[0].Value))
				for _, o := range observers {
					s.until(o, fmt.Sprint(i))
				}
				require.NoError(t, leader.Resign(s.ctx))
			}
			require.Empty(t, s.line())
		})
	}
}

// Sessions of both packages lock one mutex: one session at a time holds it, and in order.
func TestMixedMutex(t *testing.T) {
	t.Parallel()
	for _, order := range orders {
		t.Run(named(order), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, ours, false)
			var ms []mutex
			var locked []<-chan error
			for _, f := range order {
				kind := *s
				kind.face = f
				made, m := kind.mutex()
				locked = append(locked, after(func() error { return m.Lock(s.ctx) }))
				s.inLine(made)
				ms = append(ms, m)
			}
			for i, m := range ms {
				err, ok := comes(locked[i], patience)
				require.True(t, ok, "%s, number %d, does not get it", order[i].name, i)
				require.NoError(t, err)
				require.True(t, s.owns(m))
				for j := i + 1; j < len(ms); j++ {
					require.Empty(t, locked[j], "number %d holds it beside number %d", j, i)
				}
				for _, f := range []face{ours, theirs} {
					kind := *s
					kind.face = f
					_, third := kind.mutex()
					require.ErrorIs(t, third.TryLock(s.ctx), f.errLocked)
				}
				require.NoError(t, m.Unlock(s.ctx))
			}
			require.Empty(t, s.line())
		})
	}
}
