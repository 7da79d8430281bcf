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

// Row 9 (etcd #14641). etcd's own leader is stopped, and a client is bound to one member: to one
// that is left without a quorum, or to the stopped one. In other implementations its watch receives
// no events any more, which looks like a leader that stays. In Eldest the observer reports that the
// state is unknown, and why; the waiter stays in the queue, is notified of the deletion that it
// missed, and leads. etcd's package runs on the same member for comparison and reports nothing.
//
// Fails when a watch does not require a member that has a leader (and there are no liveness checks:
// "no quorum"), or when no liveness check finds that a stream has stopped ("stopped itself").
func TestRegression09_MemberWithoutQuorum(t *testing.T) {
	t.Parallel()
	const tied = 1
	for what, scene := range map[string]struct {
		stopped   []int // the first of them leads etcd
		recheck   time.Duration
		meanwhile bool // whether the other members can continue
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

			t.Cleanup(func() { // participants that leave must not wait for the stopped members
				for _, i := range scene.stopped {
					_ = c.Member(i).Cont() // it runs already, if the test has come that far
				}
			})
			halted.begin(t, c, scene.stopped...)
			t.Logf("unknown: %v", v.kind(eldest.Unknown).Reason)
			require.Zero(t, o.State().Leader, "a leader beside \"I do not know\"")
			if scene.meanwhile { // another candidate leads, and the observer cannot receive that
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

// tiedViewer makes an observer, with an interval of liveness checks, and its viewer.
func tiedViewer(t *testing.T, cli *clientv3.Client, name string, recheck time.Duration) (*observe.Observer, *viewer) {
	t.Helper()
	o, err := observe.New(observe.Config{
		Election: name, KV: cli, Watcher: cli,
		Options: observe.Options{Timeout: 250 * time.Millisecond, WatchCheck: recheck},
	})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o, &viewer{t: t, sub: o.Subscribe()}
}
