package regressions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Row 9 (etcd #14641). etcd's own leader is stopped, and a client is tied to one member:
// to one that is left without a quorum, or to the stopped one. Elsewhere its watch falls
// silent, which looks like a leader who stays. Here the observer says that it does not
// know, and why; the waiter stays in the queue, hears of the end that it missed, and
// leads. etcd's package stands beside it on the same member and says nothing.
//
// Fails when a watch does not ask for a member that has a leader (and nothing rechecks
// it: "no quorum"), or when nothing asks whether a quiet stream still tells the truth
// ("stopped itself").
func TestRegression09_MemberWithoutQuorum(t *testing.T) {
	t.Parallel()
	const tied = 1
	for what, scene := range map[string]struct {
		stopped   []int // the first of them leads etcd
		recheck   time.Duration
		meanwhile bool // whether the others can go on
	}{
		"no quorum":      {stopped: []int{0, 2}, recheck: -1},
		"stopped itself": {stopped: []int{tied}, recheck: 300 * time.Millisecond, meanwhile: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := three(t)
			name := etcdtest.Election(t)
			require.NoError(t, c.MoveLeader(etcdtest.Context(t), scene.stopped[0]))
			elsewhere := c.Host(t, 0, 2)
			first, second := join(t, elsewhere.Client(t), name), join(t, elsewhere.Client(t), name)
			leader := first.Lead(t)
			queued := second.Queue(t)

			cli := c.ClientTo(t, tied)
			last := join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.WatchCheck = scene.recheck })
			result := last.Queue(t)
			require.Equal(t, second.Candidate.Key(), etcdtest.Take(t, last.Waiting, "its wait").Predecessor.Key)
			o, v := tiedViewer(t, cli, name, scene.recheck)
			v.leader(leader.Token())
			_, their := theirs(t, cli, name, 60)
			told := their.Observe(etcdtest.Context(t))
			require.Equal(t, leader.Key(), string(etcdtest.Take(t, told, "what etcd's package sees").Kvs[0].Key))

			t.Cleanup(func() { // whoever leaves must not wait for them
				for _, i := range scene.stopped {
					_ = c.Member(i).Cont() // it goes on, if the test has come that far
				}
			})
			halted.begin(t, c, scene.stopped...)
			t.Logf("unknown: %v", v.kind(eldest.Unknown).Reason)
			require.Zero(t, o.State().Leader, "a leader beside \"I do not know\"")
			if scene.meanwhile { // somebody else leads, and it cannot hear of that
				require.NoError(t, leader.Resign(etcdtest.Context(t)))
				leader = electiontest.Wins(t, queued).Leadership
				require.Equal(t, eldest.Unknown, o.State().Kind)
			}
			require.Empty(t, result)
			select {
			case _, open := <-told:
				require.Fail(t, "etcd's package tells: the fault is mended?", "open: %v", open)
			default:
			}
			halted.end(t, c, scene.stopped...)
			v.leader(leader.Token())
			require.Empty(t, result)
			if !scene.meanwhile {
				require.NoError(t, leader.Resign(etcdtest.Context(t)))
				leader = electiontest.Wins(t, queued).Leadership
			}
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			v.leader(electiontest.Wins(t, result).Token())
		})
	}
}

// tiedViewer is view with rechecks of one's own choice.
func tiedViewer(t *testing.T, cli *clientv3.Client, name string, recheck time.Duration) (*observe.Observer, *viewer) {
	t.Helper()
	o, err := observe.New(observe.Config{
		Election: name, KV: cli, Watcher: cli, Timeout: 250 * time.Millisecond, WatchCheck: recheck,
	})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o, &viewer{t: t, sub: o.Subscribe()}
}
