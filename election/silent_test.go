package election_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// A leader that is gone with its machine is replaced long before its lease expires, by who waits
// behind it; and who waits behind that one is left alone.
//
// Fails when nobody evicts, when the one who waits is evicted, and when the lease has to expire.
func TestHeartbeatsReplaceTheDead(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	evicted := make(chan election.EvictedEvent, 9)
	hooked := func(_ *lease.Config, e *election.Config) {
		e.Hooks.Evicted = func(e election.EvictedEvent) { evicted <- e }
	}
	a := electiontest.Join(t, cli, name, beating)
	b := electiontest.Join(t, cli, name, beating, hooked)
	c := electiontest.Join(t, cli, name, beating, hooked)
	la := a.Lead(t)
	second, third := b.Queue(t), c.Queue(t)
	require.Equal(t, 1, beats(t, cli, la), "who leads beats")
	time.Sleep(2 * lease.MinHeartbeat)
	require.NoError(t, la.Err())
	require.True(t, la.Holds(0))
	require.Empty(t, evicted, "nobody was silent")

	a.Session.Abandon()
	lb := electiontest.Wins(t, second)
	e := etcdtest.Take(t, evicted, "the news of the eviction")
	require.Equal(t, la.Key(), e.Evicted.Key)
	require.Equal(t, la.Token(), e.Evicted.Token)
	require.Equal(t, int64(a.Session.ID()), e.Evicted.Lease)
	require.GreaterOrEqual(t, e.Silence, lease.MinHeartbeat)
	require.Equal(t, []string{lb.Key(), c.Candidate.Key()}, electiontest.Keys(t, cli, name))

	require.NoError(t, lb.Resign(etcdtest.Context(t)))
	lc := electiontest.Wins(t, third)
	require.Empty(t, evicted)
	etcdtest.Eventually(t, func() bool { return beats(t, cli, lb.Leadership) == 0 }, "who leads no more is not to be evicted")
	require.NoError(t, lc.Resign(etcdtest.Context(t)))
}

// An eviction whose reply is lost, or that etcd refuses, is tried again; who evicts loses nothing by it.
func TestEvictionsThatFail(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"lost reply": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
			var attempts atomic.Int32
			a := electiontest.Join(t, cli, name, beating)
			b := electiontest.Join(t, cli, name, beating, tampered(beatKV{txn: func(txn clientv3.Txn) clientv3.Txn {
				return &eviction{Txn: txn, fails: func() (carriedOut, failed bool) { return lost, attempts.Add(1) == 1 }}
			}}))
			a.Lead(t)
			waits := b.Queue(t)
			a.Session.Abandon()
			electiontest.Wins(t, waits)
			if lost {
				require.EqualValues(t, 1, attempts.Load(), "the watch has told of it")
			} else {
				require.EqualValues(t, 2, attempts.Load())
			}
		})
	}
}

// eviction is a transaction that fails if it compares a beat.
type eviction struct {
	clientv3.Txn
	fails func() (carriedOut, failed bool)
	is    bool
}

func (e *eviction) If(cs ...clientv3.Cmp) clientv3.Txn {
	for _, c := range cs {
		e.is = e.is || strings.HasPrefix(string(c.KeyBytes()), "/eldest/beat/")
	}
	e.Txn = e.Txn.If(cs...)
	return e
}

func (e *eviction) Then(ops ...clientv3.Op) clientv3.Txn { e.Txn = e.Txn.Then(ops...); return e }
func (e *eviction) Else(ops ...clientv3.Op) clientv3.Txn { e.Txn = e.Txn.Else(ops...); return e }

func (e *eviction) Commit() (*clientv3.TxnResponse, error) {
	if !e.is {
		return e.Txn.Commit()
	}
	carriedOut, failed := e.fails()
	if failed && !carriedOut {
		return nil, rpctypes.ErrPermissionDenied
	}
	resp, err := e.Txn.Commit()
	if failed {
		return nil, context.DeadlineExceeded
	}
	return resp, err
}

// A candidate without heartbeats evicts nobody, whoever beats; and each waits for as long as the beat says, not
// for as long as it would say itself.
func TestHeartbeatsOfOthers(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	slow := func(l *lease.Config, _ *election.Config) { l.Heartbeat.Timeout = time.Minute }
	a := electiontest.Join(t, cli, name, beating)
	none := electiontest.Join(t, cli, name)
	last := electiontest.Join(t, cli, name, slow)
	a.Lead(t)
	second, third := none.Queue(t), last.Queue(t)
	a.Session.Abandon()
	etcdtest.Never(t, func() bool { return len(second)+len(third) > 0 }, 3*lease.MinHeartbeat, "an eviction by one who has no heartbeats")
	require.NoError(t, none.Candidate.Withdraw(etcdtest.Context(t)))
	electiontest.Wins(t, third)
}

// A successor evicts nobody whose beats etcd has lost or held up: half a timeout passes after it was well again.
//
// Fails when the majority is asked at the end of the timeout only, and when a late answer is followed by an eviction.
func TestEvictionAfterEtcdStoodStill(t *testing.T) {
	t.Parallel()
	const timeout = 2 * lease.MinHeartbeat
	for name, still := range map[string]struct{ from, until time.Duration }{
		"until shortly before the timeout": {0, timeout * 9 / 10},
		"at the timeout":                   {timeout * 7 / 10, timeout * 3 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
			var silent atomic.Pointer[time.Time] // since when
			after := func() time.Duration {
				if since := silent.Load(); since != nil {
					return time.Since(*since)
				}
				return -1
			}
			often := func(l *lease.Config, _ *election.Config) {
				l.Heartbeat = lease.Heartbeat{Timeout: timeout, Interval: timeout / 20}
			}
			a := electiontest.Join(t, cli, name, often, tampered(beatKV{put: func(put func() (*clientv3.PutResponse, error)) (*clientv3.PutResponse, error) {
				if at := after(); at >= 0 && at < still.until+timeout/8 {
					return nil, context.DeadlineExceeded
				}
				return put()
			}}))
			l := a.Lead(t)
			evicted := make(chan election.EvictedEvent, 9)
			b := electiontest.Join(t, cli, name, often, func(_ *lease.Config, e *election.Config) {
				e.Hooks.Evicted = func(e election.EvictedEvent) { evicted <- e }
				e.KV = lateKV{e.KV, func() {
					if at := after(); at >= still.from && at < still.until {
						time.Sleep(still.until - at)
					}
				}}
			})
			waits := b.Queue(t)
			now := time.Now()
			silent.Store(&now)
			<-l.Done()
			next, err := a.Candidate.Campaign(etcdtest.Context(t))
			require.NoError(t, err, "it does not go on")
			require.Equal(t, l.Token(), next.Token(), "another tenure")
			etcdtest.Never(t, func() bool { return len(evicted)+len(waits) > 0 }, 2*timeout, "an eviction")
		})
	}
}

// lateKV is a client whose reads of beats are late.
type lateKV struct {
	clientv3.KV
	late func()
}

func (k lateKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if strings.HasPrefix(key, "/eldest/beat/") {
		k.late()
	}
	return k.KV.Get(ctx, key, opts...)
}
