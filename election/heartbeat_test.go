package election_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// beating gives a participant heartbeats. Its TTL is long: no test waits for its end.
func beating(l *lease.Config, _ *election.Config) {
	l.Heartbeat = lease.Heartbeat{Timeout: lease.MinHeartbeat}
}

// beats counts the heartbeat keys of a leader.
func beats(t *testing.T, cli *clientv3.Client, l *election.Leadership) int {
	t.Helper()
	id, err := keys.Parse(l.Election(), l.Key())
	require.NoError(t, err)
	resp, err := cli.Get(etcdtest.Context(t), keys.Heartbeat(id))
	require.NoError(t, err)
	return int(resp.Count)
}

// beatKV is a client whose heartbeats a test can change: put sends one.
type beatKV struct {
	clientv3.KV
	tamper func(put func() error) error
}

func (k beatKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (resp *clientv3.PutResponse, err error) {
	err = k.tamper(func() error {
		var err error
		resp, err = k.KV.Put(ctx, key, value, opts...)
		return err
	})
	return resp, err
}

// tampered has a candidate use a beatKV.
func tampered(tamper func(put func() error) error) electiontest.Change {
	return func(_ *lease.Config, e *election.Config) { e.KV = beatKV{e.KV, tamper} }
}

// denied refuses a heartbeat.
func denied(func() error) error { return rpctypes.ErrPermissionDenied }

// A candidate that may not write its heartbeat key leads by its lease, and reports that once.
func TestHeartbeatsThatAreNotPermitted(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	told := make(chan lease.HeartbeatEvent, 99)
	a := electiontest.Join(t, cli, name, beating, func(l *lease.Config, _ *election.Config) {
		l.Hooks.Heartbeat = func(e lease.HeartbeatEvent) { told <- e }
	}, tampered(denied))
	l := a.Lead(t)
	e := etcdtest.Take(t, told, "the news")
	require.ErrorIs(t, e.Err, rpctypes.ErrPermissionDenied)
	require.True(t, e.NotPermitted)
	b := electiontest.Join(t, cli, name, beating)
	waits := b.Queue(t)
	time.Sleep(2 * lease.MinHeartbeat)
	require.NoError(t, l.Err())
	require.True(t, l.Holds(lease.MinHeartbeat), "for as long as the lease is certain")
	require.Empty(t, waits, "one that has never beaten is not evicted")
	require.Empty(t, told, "once")
	require.NoError(t, l.Resign(etcdtest.Context(t)))
	electiontest.Wins(t, waits)
}

// Heartbeats whose replies are lost do not count: no candidate leads by them, and a leader is
// suspended before a candidate that has received them can evict it.
//
// Fails if the first win does not wait for an acknowledgement, or a heartbeat counts without one.
func TestHeartbeatsWithLostReplies(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	var lose atomic.Bool
	var kept atomic.Int32
	lose.Store(true)
	a := electiontest.Join(t, cli, name, beating, tampered(func(put func() error) error {
		err := put()
		if lose.Load() {
			return context.DeadlineExceeded
		}
		kept.Add(1)
		return err
	}))
	first := a.Queue(t)
	etcdtest.Never(t, func() bool { return len(first) > 0 }, lease.MinHeartbeat, "a win without an acknowledgement")
	lose.Store(false)
	l := electiontest.Wins(t, first)
	require.Positive(t, kept.Load())

	lose.Store(true) // the heartbeats still arrive: no candidate evicts, and none leads
	<-l.Done()
	require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
	b := electiontest.Join(t, cli, name, beating)
	waits := b.Queue(t)
	etcdtest.Never(t, func() bool { return len(waits) > 0 }, 2*lease.MinHeartbeat, "an eviction of one whose beats arrive")
	lose.Store(false)
	next, err := a.Candidate.Await(etcdtest.Context(t))
	require.NoError(t, err, "it does not go on")
	require.Equal(t, l.Token(), next.Token(), "another tenure")
}

// A heartbeat that was under way when its key was deleted may be carried out after that. Then no more
// follow, but a candidate of the session that waits is not evicted for its silence.
func TestHeartbeatAfterTheDeletion(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	a := electiontest.Join(t, cli, name, beating)
	l := a.Lead(t)
	require.NoError(t, l.Resign(etcdtest.Context(t)))
	etcdtest.Eventually(t, func() bool { return beats(t, cli, l) == 0 }, "the deletion")
	id := a.Session.ID()
	require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), keys.Heartbeat(int64(id)), "late 1 500ms", clientv3.WithLease(id))))
	ahead := electiontest.Join(t, cli, name).Lead(t)
	waits := a.Queue(t)
	behind := electiontest.Join(t, cli, name, beating).Queue(t)
	etcdtest.Never(t, func() bool { return len(waits)+len(behind) > 0 }, 3*lease.MinHeartbeat, "an eviction of a waiter")
	require.NoError(t, ahead.Resign(etcdtest.Context(t)))
	require.NoError(t, electiontest.Wins(t, waits).Resign(etcdtest.Context(t)))
	electiontest.Wins(t, behind)
}

// After a resume it is unknown whether heartbeats were sent for the lease. If etcd refuses them the
// session is lost and does not lead by the lease alone: no other candidate could lead, nor evict it
// if etcd never accepted a heartbeat.
func TestHeartbeatsOfAResumedLease(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	a := electiontest.Join(t, cli, name, beating)
	l := a.Lead(t)
	a.Session.Abandon()
	session, err := lease.Resume(etcdtest.Context(t), lease.Config{Lease: cli, Options: lease.Options{Heartbeat: lease.Heartbeat{Timeout: lease.MinHeartbeat}}}, a.Session.ID())
	require.NoError(t, err)
	b := electiontest.Join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.Session = session }, tampered(denied))
	waits := b.Campaign(etcdtest.ContextFor(t, patience)) // longer than the test's wait for it
	electiontest.Fails(t, waits, eldest.ErrSessionLost, rpctypes.ErrPermissionDenied)
	etcdtest.Eventually(t, func() bool { return len(electiontest.Keys(t, cli, l.Election())) == 0 }, "the revocation of its lease")
}

// The proof is at no revision before the heartbeat with which the stretch began: between the two
// the candidate may have been evicted.
func TestHeartbeatsBeforeTheProof(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	asked := make(chan int64, 99)
	a := electiontest.Join(t, cli, name, beating)
	b := electiontest.Join(t, cli, name, beating, func(_ *lease.Config, e *election.Config) {
		e.Ordering = ordering{
			Ordering: txn.ByPointer{},
			ahead: func(_ context.Context, at int64, read reading) (txn.Position, error) {
				asked <- at
				return read()
			},
		}
	})
	la := a.Lead(t)
	waits := b.Queue(t)
	require.NoError(t, la.Resign(etcdtest.Context(t)))
	lb := electiontest.Wins(t, waits)
	id, err := keys.Parse(name, lb.Key())
	require.NoError(t, err)
	resp, err := cli.Get(etcdtest.Context(t), keys.Heartbeat(id))
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1)
	for len(asked) > 0 {
		if at := <-asked; at > 0 {
			require.GreaterOrEqual(t, at, resp.Kvs[0].CreateRevision, "a proof of a past revision")
		}
	}
}

// All candidates of a session with heartbeats have one client: in another namespace there might be
// old heartbeats of the lease, which do not change.
func TestHeartbeatsOfOneClient(t *testing.T) {
	t.Parallel()
	cli, name, ctx := etcdtest.Shared(t).Client(t), etcdtest.Election(t), etcdtest.Context(t)
	a := electiontest.Join(t, cli, name, beating)
	a.Lead(t)
	c, err := election.New(election.Config{Election: name + "-2", Session: a.Session, KV: namespace.NewKV(cli, "there/"), Watcher: cli})
	require.NoError(t, err)
	_, err = c.Campaign(ctx)
	require.ErrorIs(t, err, eldest.ErrInvalid, "another client was taken")
	require.ErrorContains(t, err, "client")
}

// An etcd without space refuses heartbeats: no candidate leads, and none is evicted.
func TestHeartbeatsWithoutSpace(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli, name, ctx := cluster.Client(t), etcdtest.Election(t), etcdtest.Context(t)
	a := electiontest.Join(t, cli, name, beating)
	l := a.Lead(t)
	b := electiontest.Join(t, cli, name, beating)
	waits := b.Queue(t)
	alarm := etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	status, err := cli.Status(ctx, cli.Endpoints()[0])
	require.NoError(t, err)
	alarm.MemberID = status.Header.MemberId
	raw := etcdserverpb.NewMaintenanceClient(cli.ActiveConnection())
	require.NoError(t, etcdtest.Err(raw.Alarm(ctx, &alarm)))
	<-l.Done()
	require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
	etcdtest.Never(t, func() bool { return len(waits) > 0 || electiontest.Keys(t, cli, name)[0] != l.Key() }, 3*lease.MinHeartbeat, "an eviction")
	alarm.Action = etcdserverpb.AlarmRequest_DEACTIVATE
	require.NoError(t, etcdtest.Err(raw.Alarm(ctx, &alarm)))
	next, err := a.Candidate.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, l.Token(), next.Token())
}

// A leader whose machine has crashed is replaced long before its lease expires, by the candidate
// that is queued behind it. No waiting candidate is evicted.
//
// Fails if no candidate evicts, if a waiting one is evicted, or if the lease has to expire.
func TestHeartbeatsReplaceTheDead(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	evicted := make(chan election.EvictedEvent, 9)
	hooked := func(_ *lease.Config, e *election.Config) {
		e.Hooks.Evicted = func(e election.EvictedEvent) { evicted <- e }
	}
	slow := func(l *lease.Config, _ *election.Config) { // for a busy machine: nobody may be silent so long
		l.Heartbeat = lease.Heartbeat{Timeout: 4 * lease.MinHeartbeat, Interval: lease.MinHeartbeat / 4}
	}
	a := electiontest.Join(t, cli, name, slow)
	b := electiontest.Join(t, cli, name, slow, hooked)
	c := electiontest.Join(t, cli, name, slow, hooked)
	la := a.Lead(t)
	second, third := b.Queue(t), c.Queue(t)
	require.Equal(t, 1, beats(t, cli, la), "who leads beats")
	time.Sleep(7 * lease.MinHeartbeat)
	require.NoError(t, la.Err())
	require.True(t, la.Holds(0))
	require.Empty(t, evicted, "nobody was silent")

	a.Session.Abandon()
	lb := electiontest.Wins(t, second)
	e := etcdtest.Take(t, evicted, "the news of the eviction")
	require.Equal(t, la.Key(), e.Evicted.Key)
	require.Equal(t, la.Token(), e.Evicted.Token)
	require.Equal(t, int64(a.Session.ID()), e.Evicted.Lease)
	require.GreaterOrEqual(t, e.Silence, 4*lease.MinHeartbeat)
	require.Equal(t, []string{lb.Key(), c.Candidate.Key()}, electiontest.Keys(t, cli, name))

	require.NoError(t, lb.Resign(etcdtest.Context(t)))
	lc := electiontest.Wins(t, third)
	require.Empty(t, evicted)
	etcdtest.Eventually(t, func() bool { return beats(t, cli, lb.Leadership) == 0 }, "who leads no more is not to be evicted")
	require.NoError(t, lc.Resign(etcdtest.Context(t)))
}

// An eviction whose reply is lost, or that etcd refuses, is repeated, without other effects.
func TestEvictionsThatFail(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"lost reply": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
			var attempts atomic.Int32
			a := electiontest.Join(t, cli, name, beating)
			b := electiontest.Join(t, cli, name, beating, func(_ *lease.Config, e *election.Config) {
				e.KV = etcdtest.WithTxns(e.KV, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
					if !slices.ContainsFunc(t.If, ofABeat) || attempts.Add(1) > 1 {
						return t.Commit(t.Context)
					}
					if !lost {
						return nil, rpctypes.ErrPermissionDenied
					}
					_, _ = t.Commit(t.Context)
					return nil, context.DeadlineExceeded
				})
			})
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

// ofABeat reports whether a transaction compares a heartbeat, as an eviction does.
func ofABeat(c clientv3.Cmp) bool {
	return strings.HasPrefix(string(c.KeyBytes()), "/eldest/heartbeat/")
}

// A candidate without heartbeats evicts no other, with heartbeats or without; and a candidate waits
// for the timeout in the other one's heartbeat, not for its own.
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

// A successor evicts no candidate whose heartbeats etcd has lost or delayed: half a timeout passes
// after etcd has recovered.
//
// Fails if a majority is asked only at the end of the timeout, or if a late reply causes an
// eviction.
func TestEvictionAfterEtcdStoodStill(t *testing.T) {
	t.Parallel()
	const timeout = 4 * lease.MinHeartbeat // for a busy machine
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
			a := electiontest.Join(t, cli, name, often, tampered(func(put func() error) error {
				if at := after(); at >= 0 && at < still.until+timeout/8 {
					return context.DeadlineExceeded
				}
				return put()
			}))
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

// lateKV is a client whose reads of heartbeats are late.
type lateKV struct {
	clientv3.KV
	late func()
}

func (k lateKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if strings.HasPrefix(key, "/eldest/heartbeat/") {
		k.late()
	}
	return k.KV.Get(ctx, key, opts...)
}

// A campaign that another candidate of the session prevents leaves the ended tenure readable.
//
// Fails, with a panic, if the refused campaign drops the candidate's machine.
func TestEndedTenureAfterARefusedCampaign(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Client, func(cfg *lease.Config) { cfg.Heartbeat.Timeout = time.Minute })
	first, second := s.candidate("first", on(session)), s.candidate("second", on(session))
	l := s.lead(first)
	require.NoError(t, l.Resign(s.Ctx))
	s.lead(second)
	require.ErrorIs(t, etcdtest.Err(first.Campaign(s.Ctx)), eldest.ErrCampaigning)
	require.False(t, l.Holds(0))
	require.ErrorIs(t, l.Err(), eldest.ErrResigned)
	require.ErrorIs(t, l.Guard().Alive(), eldest.ErrNotLeading)
	require.NoError(t, l.Resign(s.Ctx))
}

// early is a clock whose fixed instant is in the future.
type early struct{ lease.Clock }

func (c early) Now() time.Duration { return c.Clock.Now() - 1000*time.Hour }

// Only differences of a clock's readings count.
//
// Fails if a negative reading counts as none: then nobody is evicted.
func TestReadingsBelowZero(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	before := func(l *lease.Config, _ *election.Config) { l.Clock = early{lease.Monotonic()} }
	a := electiontest.Join(t, cli, name, beating, before)
	b := electiontest.Join(t, cli, name, beating, before)
	a.Lead(t)
	second := b.Queue(t)
	a.Session.Abandon()
	electiontest.Wins(t, second)
}
