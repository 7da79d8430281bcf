package election_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// While etcd stands still the leader is suspended, and leads on with its token afterwards: the one that
// waits evicts nobody.
//
// Fails when the leading context goes on, when the leadership moves, and when the token is another.
func TestHeartbeatsSuspendAndResume(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli, name := cluster.Client(t), etcdtest.Election(t)
	suspended := make(chan election.SuspendedEvent, 9)
	a := electiontest.Join(t, cli, name, beating, func(_ *lease.Config, e *election.Config) {
		e.Hooks.Suspended = func(e election.SuspendedEvent) { suspended <- e }
	})
	b := electiontest.Join(t, cli, name, beating)
	ctx := etcdtest.Context(t)
	l := a.Lead(t)
	waits := b.Queue(t)
	for range 2 {
		require.NoError(t, cluster.Member(0).Stop())
		<-l.Done()
		require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
		require.False(t, l.Holds(0), "it is not certain any more")
		require.ErrorIs(t, l.Guard().Alive(), eldest.ErrNotLeading)
		e := etcdtest.Take(t, suspended, "the hook")
		require.Equal(t, l.Token(), e.Token)
		require.ErrorIs(t, e.Cause, eldest.ErrSuspended)
		require.Equal(t, l.Token(), a.Candidate.Status().Token, "the key stands")
		time.Sleep(2 * lease.MinHeartbeat)
		require.NoError(t, cluster.Member(0).Cont())
		next, err := a.Candidate.Campaign(ctx)
		require.NoError(t, err, "it does not go on")
		require.Equal(t, l.Token(), next.Token(), "another tenure")
		require.Error(t, l.Err(), "an end is an end")
		require.NoError(t, next.Err())
		won := etcdtest.Take(t, a.Won, "the hook")
		for won.Resumed != true {
			won = etcdtest.Take(t, a.Won, "the hook")
		}
		l = next
	}
	require.Empty(t, waits)
	require.NoError(t, l.Resign(ctx))
	require.Greater(t, electiontest.Wins(t, waits).Token(), l.Token())
}

// A function under Lead whose tenure is suspended returns, the key is kept, and the campaign after
// it leads on. One whose caller gives up resigns.
func TestLeadKeepsTheKeyOfASuspendedTenure(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli, name := cluster.Client(t), etcdtest.Election(t)
	a := electiontest.Join(t, cli, name, beating)
	ctx := etcdtest.Context(t)
	var tokens []eldest.Token
	enough := errors.New("enough")
	for {
		l := a.Lead(t)
		tokens = append(tokens, l.Token())
		if len(tokens) == 1 {
			require.NoError(t, cluster.Member(0).Stop())
		}
		err := l.Lead(ctx, func(ctx context.Context) error {
			if len(tokens) > 1 {
				return enough
			}
			<-ctx.Done()
			return nil
		})
		if len(tokens) > 1 {
			require.ErrorIs(t, err, enough)
			break
		}
		require.ErrorIs(t, err, eldest.ErrSuspended, "the key is given up")
		require.NoError(t, cluster.Member(0).Cont())
	}
	require.Equal(t, tokens[0], tokens[1])
	require.Empty(t, electiontest.Keys(t, cli, name), "it has resigned")
}

// After a pause of the process, the first call says that the leader is not certain, before any timer has
// gone off; and what waits in a buffer changes nothing.
func TestHeartbeatsAfterAPause(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	clock := etcdtest.NewClock()
	a := electiontest.Join(t, cli, name, beating, func(l *lease.Config, _ *election.Config) { l.Clock = clock })
	l := a.Lead(t)
	clock.Jump(lease.MinHeartbeat)
	require.False(t, l.Holds(0), "it is not certain any more")
	require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
	require.NoError(t, a.Session.Err(), "the lease lives")
	next, err := a.Candidate.Campaign(etcdtest.Context(t))
	require.NoError(t, err, "it does not go on")
	require.Equal(t, l.Token(), next.Token(), "another tenure")
}

// A suspended tenure ends for good when its key is deleted: the same candidate then stands anew. And when
// it is resigned, or retired.
func TestSuspendedTenureEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, t *testing.T, p *electiontest.Participant, l *election.Leadership){
		"deleted": func(ctx context.Context, t *testing.T, p *electiontest.Participant, l *election.Leadership) {
			require.NoError(t, etcdtest.Err(p.Client.Delete(ctx, l.Key())))
			etcdtest.Eventually(t, func() bool { return p.Candidate.Status().Token == 0 }, "the news")
			_, err := p.Candidate.Await(ctx)
			require.ErrorIs(t, err, eldest.ErrNotRegistered)
			require.ErrorIs(t, err, eldest.ErrDeposed)
		},
		"resigned": func(ctx context.Context, t *testing.T, _ *electiontest.Participant, l *election.Leadership) {
			require.NoError(t, l.Resign(ctx))
		},
		"retired": func(ctx context.Context, t *testing.T, p *electiontest.Participant, l *election.Leadership) {
			require.NoError(t, p.Candidate.Retire(l.Token(), nil))
			require.ErrorIs(t, etcdtest.Err(p.Candidate.Await(ctx)), eldest.ErrLeading, "the key stands for nobody")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli, name, ctx := etcdtest.Shared(t).Client(t), etcdtest.Election(t), etcdtest.Context(t)
			clock := etcdtest.NewClock()
			a := electiontest.Join(t, cli, name, beating, func(l *lease.Config, _ *election.Config) { l.Clock = clock })
			l := a.Lead(t)
			clock.Jump(lease.MinHeartbeat)
			require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
			end(ctx, t, a, l)
			require.ErrorIs(t, l.Err(), eldest.ErrSuspended, "the first cause counts")
			require.Greater(t, a.Lead(t).Token(), l.Token())
		})
	}
}

// A tenure that was suspended and leads on has another Leadership: the old one ends nothing any more. And who
// retires or resigns it while its win is being proven again, ends it.
func TestEndsWhileItResumes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(ctx context.Context, p *electiontest.Participant, l *election.Leadership) error
		cause error
	}{
		"retired": {func(_ context.Context, p *electiontest.Participant, l *election.Leadership) error {
			return p.Candidate.Retire(l.Token(), nil)
		}, eldest.ErrRetired},
		"resigned": {func(ctx context.Context, _ *electiontest.Participant, l *election.Leadership) error {
			return l.Resign(ctx)
		}, eldest.ErrResigned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli, name, ctx := etcdtest.Shared(t).Client(t), etcdtest.Election(t), etcdtest.Context(t)
			clock := etcdtest.NewClock()
			var silent atomic.Bool
			a := electiontest.Join(t, cli, name, beating, func(l *lease.Config, _ *election.Config) { l.Clock = clock },
				tampered(beatKV{put: func(put func() (*clientv3.PutResponse, error)) (*clientv3.PutResponse, error) {
					if silent.Load() {
						return nil, context.DeadlineExceeded
					}
					return put()
				}}))
			old := a.Lead(t)
			clock.Jump(lease.MinHeartbeat)
			require.ErrorIs(t, old.Err(), eldest.ErrSuspended)
			l := a.Lead(t)
			require.ErrorIs(t, old.Resign(ctx), eldest.ErrNotLeading, "it ended another one")
			old.Retire(nil)
			require.NoError(t, l.Err(), "another Leadership has ended it")

			silent.Store(true)
			clock.Jump(lease.MinHeartbeat)
			require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
			waits := a.Campaign(ctx)
			etcdtest.Eventually(t, func() bool { return !a.Candidate.Status().Suspended }, "it is being proven")
			require.NoError(t, c.end(ctx, a, l))
			silent.Store(false)
			electiontest.Fails(t, waits, c.cause)
			require.Greater(t, a.Lead(t).Token(), l.Token(), "it has led on")
		})
	}
}

// Found to be the oldest without wanting to lead, a candidate has to prove that anew when it wants to.
func TestRegisterWhileSuspended(t *testing.T) {
	t.Parallel()
	cli, name, ctx := etcdtest.Shared(t).Client(t), etcdtest.Election(t), etcdtest.Context(t)
	clock := etcdtest.NewClock()
	var silent atomic.Bool
	a := electiontest.Join(t, cli, name, beating, func(l *lease.Config, _ *election.Config) { l.Clock = clock },
		tampered(beatKV{put: func(put func() (*clientv3.PutResponse, error)) (*clientv3.PutResponse, error) {
			if silent.Load() {
				return nil, context.DeadlineExceeded
			}
			return put()
		}}))
	l := a.Lead(t)
	clock.Jump(lease.MinHeartbeat)
	require.ErrorIs(t, l.Err(), eldest.ErrSuspended)
	require.NoError(t, etcdtest.Err(a.Candidate.Register(ctx)))
	silent.Store(true)
	waits := electiontest.After(func() (*election.Leadership, error) { return a.Candidate.Await(ctx) })
	etcdtest.Never(t, func() bool { return len(waits) > 0 }, lease.MinHeartbeat, "a win in no stretch")
	silent.Store(false)
	require.Equal(t, l.Token(), electiontest.Wins(t, waits).Token())
}
