package observe_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is a test environment in which the recorded client observes the writes of the other one.
type stage struct{ *etcdtest.Env }

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageOn(t, etcdtest.Shared(t))
}

func newStageOn(t *testing.T, c *etcdtest.Cluster) *stage {
	t.Helper()
	return &stage{etcdtest.NewEnv(t, c)}
}

// observer starts an observer that is closed with the test. Its timeout is long and it does not
// check quiet watches: on a busy machine a slow response would count as an unavailable etcd.
func (s *stage) observer(change ...func(*observe.Config)) *observe.Observer {
	s.T.Helper()
	cfg := observe.Config{Election: s.Election, KV: s.Client, Watcher: s.Client, Options: observe.Options{Timeout: 15 * time.Second, WatchCheck: -1}}
	for _, f := range change {
		f(&cfg)
	}
	o, err := observe.New(cfg)
	require.NoError(s.T, err)
	s.T.Cleanup(o.Close)
	return o
}

// quick makes an observer notice an unavailable etcd within about a second. On a busy machine its
// state may become Unknown without a fault.
func quick(cfg *observe.Config) {
	cfg.Timeout, cfg.WatchCheck = 150*time.Millisecond, 150*time.Millisecond
}

// listening makes an observer check quiet watches often, with the long timeout.
func listening(cfg *observe.Config) { cfg.WatchCheck = 150 * time.Millisecond }

// key returns the key of the candidate with the given lease, which need not exist.
func (s *stage) key(lease int64) string { return keys.Candidate(s.Election, lease) }

// put writes a candidate's key, and returns its token and mod revision.
func (s *stage) put(lease int64, value string) (eldest.Token, int64) {
	s.T.Helper()
	resp, err := s.Admin.Txn(s.Ctx).Then(clientv3.OpPut(s.key(lease), value), clientv3.OpGet(s.key(lease))).Commit()
	require.NoError(s.T, err)
	kv := resp.Responses[1].GetResponseRange().Kvs[0]
	return eldest.Token(kv.CreateRevision), kv.ModRevision
}

// remove deletes a candidate's key and returns the revision.
func (s *stage) remove(lease int64) int64 {
	s.T.Helper()
	return s.Remove(s.key(lease))
}

// next reads a state.
func (s *stage) next(sub *observe.Subscription) eldest.State {
	s.T.Helper()
	state, err := sub.Next(s.Ctx)
	require.NoError(s.T, err)
	return state
}

// led reads states until one has the lease's candidate as the leader, with the value.
func (s *stage) led(sub *observe.Subscription, lease int64, value string) eldest.State {
	s.T.Helper()
	return s.until(sub, func(state eldest.State) bool {
		return state.Kind == eldest.Led && state.Leader.Lease == lease && string(state.Leader.Value) == value
	})
}

// is reads states until one is of the kind.
func (s *stage) is(sub *observe.Subscription, kind eldest.Kind) eldest.State {
	s.T.Helper()
	return s.until(sub, func(state eldest.State) bool { return state.Kind == kind })
}

// until reads states until will accepts one, and checks the guarantees for all of them: an unknown
// state has a reason, and tokens never decrease (G6).
func (s *stage) until(sub *observe.Subscription, will func(eldest.State) bool) eldest.State {
	s.T.Helper()
	var newest eldest.Token
	for {
		state := s.next(sub)
		switch state.Kind {
		case eldest.Unknown:
			require.Error(s.T, state.Reason)
			require.ErrorContains(s.T, state.Reason, s.Election)
			require.Zero(s.T, state.Leader)
		case eldest.Led:
			require.NoError(s.T, state.Reason)
			require.GreaterOrEqual(s.T, state.Leader.Token, newest)
			newest = state.Leader.Token
		case eldest.Nobody:
			require.NoError(s.T, state.Reason)
			require.Zero(s.T, state.Leader)
		}
		if will(state) {
			return state
		}
	}
}
