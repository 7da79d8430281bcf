package observe_test

import (
	"context"
	"strings"
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

// patience is how long a test may take: longer than a wait in it.
var patience = 2 * etcdtest.Patience

// stage is what most tests stand on: an election of their own, a recorded client
// that observes, and another one that writes what is observed by hand.
type stage struct {
	t        *testing.T
	ctx      context.Context
	cluster  *etcdtest.Cluster
	election string
	rec      *etcdtest.Recorder
	cli      *clientv3.Client // recorded
	admin    *clientv3.Client // not recorded
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageOn(t, etcdtest.Shared(t))
}

func newStageOn(t *testing.T, c *etcdtest.Cluster) *stage {
	t.Helper()
	ctx := etcdtest.ContextFor(t, patience)
	rec := &etcdtest.Recorder{}
	s := &stage{
		t: t, ctx: ctx, cluster: c, election: strings.ReplaceAll(t.Name(), "/", "|"),
		rec: rec, cli: c.Client(t, rec.Attach), admin: c.Client(t),
	}
	t.Cleanup(func() {
		// Keys without a lease outlive a test that is run again.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, _ = s.admin.Delete(ctx, keys.Prefix(s.election), clientv3.WithPrefix())
	})
	return s
}

// observer starts an observer that is closed with the test. It takes no slow answer for
// silence and does not look at quiet watches: on a busy machine the time for either would
// come.
func (s *stage) observer(change ...func(*observe.Config)) *observe.Observer {
	s.t.Helper()
	cfg := observe.Config{Election: s.election, KV: s.cli, Watcher: s.cli, Timeout: 15 * time.Second, Recheck: -1}
	for _, f := range change {
		f(&cfg)
	}
	o, err := observe.New(cfg)
	require.NoError(s.t, err)
	s.t.Cleanup(o.Close)
	return o
}

// quick notices a silent etcd within about a second. A busy machine may be taken for one:
// its states come and go.
func quick(cfg *observe.Config) {
	cfg.Timeout, cfg.Recheck = 150*time.Millisecond, 150*time.Millisecond
}

// listening looks at quiet watches often, and waits for its answers.
func listening(cfg *observe.Config) { cfg.Recheck = 150 * time.Millisecond }

// key is the key of the candidate with the given lease, which need not exist.
func (s *stage) key(lease int64) string { return keys.Candidate(s.election, lease) }

// put writes a candidate's key, and returns its token and mod revision.
func (s *stage) put(lease int64, value string) (eldest.Token, int64) {
	s.t.Helper()
	resp, err := s.admin.Txn(s.ctx).Then(clientv3.OpPut(s.key(lease), value), clientv3.OpGet(s.key(lease))).Commit()
	require.NoError(s.t, err)
	kv := resp.Responses[1].GetResponseRange().Kvs[0]
	return eldest.Token(kv.CreateRevision), kv.ModRevision
}

// remove deletes a candidate's key and returns the revision.
func (s *stage) remove(lease int64) int64 {
	s.t.Helper()
	resp, err := s.admin.Delete(s.ctx, s.key(lease))
	require.NoError(s.t, err)
	require.Equal(s.t, int64(1), resp.Deleted)
	return resp.Header.Revision
}

// next reads a state.
func (s *stage) next(sub *observe.Subscription) eldest.State {
	s.t.Helper()
	state, err := sub.Next(s.ctx)
	require.NoError(s.t, err)
	return state
}

// led reads states until one says that the lease's candidate leads with the value.
func (s *stage) led(sub *observe.Subscription, lease int64, value string) eldest.State {
	s.t.Helper()
	return s.until(sub, func(state eldest.State) bool {
		return state.Kind == eldest.Led && state.Leader.Lease == lease && string(state.Leader.Value) == value
	})
}

// is reads states until one is of the kind.
func (s *stage) is(sub *observe.Subscription, kind eldest.Kind) eldest.State {
	s.t.Helper()
	return s.until(sub, func(state eldest.State) bool { return state.Kind == kind })
}

// until reads states until one will do, and holds all of them to what is promised:
// an unknown one has a reason, and tokens never go back (G6).
func (s *stage) until(sub *observe.Subscription, will func(eldest.State) bool) eldest.State {
	s.t.Helper()
	var newest eldest.Token
	for {
		state := s.next(sub)
		switch state.Kind {
		case eldest.Unknown:
			require.Error(s.t, state.Reason)
			require.ErrorContains(s.t, state.Reason, s.election)
			require.Zero(s.t, state.Leader)
		case eldest.Led:
			require.NoError(s.t, state.Reason)
			require.GreaterOrEqual(s.t, state.Leader.Token, newest)
			newest = state.Leader.Token
		case eldest.Nobody:
			require.NoError(s.t, state.Reason)
			require.Zero(s.t, state.Leader)
		}
		if will(state) {
			return state
		}
	}
}
