package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// leavesItsKey has a candidate lead whose key etcd then refuses to remove: to the caller
// of Resign and of Close, and in the background.
func (s *stage) leavesItsKey(r *denying, session *lease.Session) (*election.Candidate, *election.Leadership) {
	s.T.Helper()
	c := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = r })
	l := s.lead(c)
	r.now.Store(true)
	require.ErrorIs(s.T, l.Resign(s.Ctx), rpctypes.ErrPermissionDenied)
	refused := r.n.Load()
	s.Until("the background is refused as well", func() bool { return r.n.Load() > refused })
	require.ErrorIs(s.T, c.Close(s.Ctx), rpctypes.ErrPermissionDenied)
	require.Equal(s.T, []string{c.Key()}, s.Queue())
	return c, l
}

// G2 and G4: whose hands the key of an ended tenure falls into makes no difference. The
// session remembers what its candidates have left, for those that come after them: a guarded
// write of an ended tenure that is still on its way must find its token gone.
//
// Broken by a lease that does not remember what is doomed beyond the candidate.
func TestKeyOfAnEndedTenureIsNotAdoptedByTheNextCandidate(t *testing.T) {
	s := newStage(t)
	r := newDenying(s.Admin)
	session := s.session(s.Admin)
	_, first := s.leavesItsKey(r, session)
	ended := []*election.Leadership{first}

	// One with a client of its own, which may remove it, does not lead with it.
	other := s.lead(s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = newDenying(s.Admin) }))
	require.Greater(t, other.Token(), first.Token(), "an earlier candidate's token")
	require.NoError(t, other.Resign(s.Ctx))
	r.now.Store(false)
	_, again := s.leavesItsKey(r, session)
	ended = append(ended, again)

	// One that may not remove it does not lead with it either, nor does it make the
	// session forget.
	require.ErrorIs(t, etcdtest.Err(s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = r }).Campaign(s.Ctx)), rpctypes.ErrPermissionDenied, "a key that was given up is adopted")

	for range 2 {
		r.now.Store(false)
		_, l := s.leavesItsKey(r, session)
		r.now.Store(false)
		for _, before := range ended {
			require.Greater(t, l.Token(), before.Token(), "an earlier candidate's token")
			late, err := s.Admin.Txn(s.Ctx).If(before.Guard().Compare()).Then(clientv3.OpPut(t.Name(), "late")).Commit()
			require.NoError(t, err)
			require.False(t, late.Succeeded, "of a tenure that has ended")
		}
		ended = append(ended, l)
	}
}

// Regression 42: a refusal is one failed attempt. Resign, Withdraw and Close ask etcd
// again each time, and the background goes on by itself.
//
// Broken by keeping the first answer, and by ending the clean-up at a refusal.
func TestRefusedRemovalIsTriedAgain(t *testing.T) {
	t.Run("by the caller", func(t *testing.T) {
		s := newStage(t)
		r := newDenying(s.Admin)
		never := func(cfg *election.Config) {
			cfg.KV, cfg.Backoff = r, func(int) time.Duration { return time.Hour } // the background
		}
		resigns, closes, withdraws := s.candidate("v", never), s.candidate("v", never), s.candidate("v", never)
		l := s.lead(resigns)
		for _, c := range []*election.Candidate{closes, withdraws} {
			require.NoError(t, etcdtest.Err(c.Register(s.Ctx)))
		}
		leave := map[string]func() error{
			"resign":   func() error { return l.Resign(s.Ctx) },
			"close":    func() error { return closes.Close(s.Ctx) },
			"withdraw": func() error { return withdraws.Withdraw(s.Ctx) },
		}
		r.now.Store(true)
		for name, again := range leave {
			for range 3 {
				before := r.n.Load()
				require.ErrorIs(t, again(), rpctypes.ErrPermissionDenied, name)
				require.Greater(t, r.n.Load(), before, "%s sends nothing", name)
			}
		}
		s.Until("each background was refused, and waits", func() bool { return r.n.Load() == 3*3 })
		r.now.Store(false)
		require.Len(t, s.Queue(), 3)
		for name, again := range leave {
			require.NoError(t, again(), name)
		}
		require.Empty(t, s.Queue(), "confirmed when the call returns")
	})
	t.Run("in the background", func(t *testing.T) {
		s := newStage(t)
		r := newDenying(s.Admin)
		session := s.session(s.Admin)
		s.leavesItsKey(r, session)
		r.now.Store(false)
		s.clean(session)
	})
}

// The caller and the background remove the same key in turns: while the background's request
// is on its way, a caller that asks again waits for its answer and sends nothing of its own.
//
// Broken by a background that takes no turn.
func TestOneRemovalAtATime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var leaving atomic.Bool
	var sent atomic.Int64
	held, release := make(chan struct{}), make(chan struct{})
	kv := etcdtest.WithTxns(s.Admin, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if leaving.Load() {
			switch sent.Add(1) {
			case 1: // the caller's
				return nil, rpctypes.ErrPermissionDenied
			case 2: // the background's
				close(held)
				<-release
			}
		}
		return t.Commit(t.Context)
	})
	l := s.lead(s.candidate("v", func(cfg *election.Config) { cfg.KV, cfg.Timeout = kv, time.Minute }))
	leaving.Store(true)
	require.ErrorIs(t, l.Resign(s.Ctx), rpctypes.ErrPermissionDenied)
	<-held
	again := etcdtest.Go(func() error { return l.Resign(s.Ctx) })
	require.Never(t, func() bool { return sent.Load() > 2 || len(again) > 0 }, 300*time.Millisecond, 10*time.Millisecond)
	close(release)
	require.NoError(t, <-again)
	require.EqualValues(t, 2, sent.Load())
	require.Empty(t, s.Queue())
}

// Regression 42: a late registration arrives while etcd refuses to remove anything.
//
// Broken by ending the sweep at a refusal.
func TestSweepOutlivesARefusal(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Admin)
	r := newDenying(s.Admin)
	g := newGate(r)
	c := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = g })
	ctx, cancel := context.WithCancel(s.Ctx)
	g.on(func(context.Context) error { cancel(); return context.DeadlineExceeded }, nil)
	require.ErrorIs(t, etcdtest.Err(c.Campaign(ctx)), context.Canceled)
	require.NoError(t, c.Close(s.Ctx), "nothing has arrived, so nothing is left")

	r.now.Store(true)
	s.arrives(session)
	s.Until("the removal was refused", func() bool { return r.n.Load() >= 2 })
	r.now.Store(false)
	s.clean(session)
}

// soon is a change of Config under which requests that are not answered are given up soon.
func soon(cfg *election.Config) { cfg.Timeout = 300 * time.Millisecond }

// arrives has a registration arrive that was sent earlier, and returns its token.
func (s *stage) arrives(session *lease.Session) eldest.Token {
	s.T.Helper()
	place, err := txn.ByCreateRevision{}.Enter(s.Ctx, s.Admin, txn.Entry{Election: s.Election, Lease: int64(session.ID()), Value: []byte("v")})
	require.NoError(s.T, err)
	require.False(s.T, place.Adopted)
	return place.Token
}

// Regression 41: a registration arrives late, and the request that removes it is held back
// on its way. A campaign of now must not lead with that token: the request would end its
// tenure, and beside a leader that has not noticed yet the next one would lead. Through the
// same client it waits for the removal; through another one it finds the key, and must know
// that its token is doomed.
//
// Broken by a sweep that does not doom the token before it sends the request.
func TestDoomedTokenIsNotAdopted(t *testing.T) {
	for name, client := range map[string]func(*stage, clientv3.KV) clientv3.KV{
		"through the same client": func(_ *stage, kv clientv3.KV) clientv3.KV { return kv },
		"through another client":  func(s *stage, _ clientv3.KV) clientv3.KV { return s.Client },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			session := s.session(s.Admin)
			c, g := s.gated("v", on(session), soon)
			ctx, cancel := context.WithCancel(s.Ctx)
			g.on(func(context.Context) error { cancel(); return context.DeadlineExceeded }, nil)
			require.ErrorIs(t, etcdtest.Err(c.Campaign(ctx)), context.Canceled)
			require.NoError(t, c.Close(s.Ctx), "the sweep is what is left")

			held := make(chan func(), 1)
			g.hold(held)
			late := s.arrives(session)
			send := get(s, held) // the sweep has found it
			again := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = client(s, g) })
			l := s.lead(again)
			next := s.candidate("next")
			require.NoError(t, etcdtest.Err(next.Register(s.Ctx)))
			send()
			require.Equal(t, []string{l.Key(), next.Key()}, s.Queue(), "its own past has ended the tenure")
			require.Greater(t, l.Token(), late)
			require.NoError(t, l.Proclaim(s.Ctx, []byte("w")))
			require.NoError(t, l.Err())
		})
	}
}

// Regression 04: the key is deleted by hand while the first of two registrations, whose
// outcome is unknown, is still on its way. When it arrives it is removed.
//
// Broken by a deposed candidate that looks out for nothing.
func TestLateRegistrationOfADeposedCandidate(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Admin)
	c, g := s.gated("v", on(session), soon)
	g.on(func(context.Context) error { return context.DeadlineExceeded }, nil)
	l := s.lead(c)
	require.NoError(t, etcdtest.Err(s.Admin.Delete(s.Ctx, c.Key())))
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
	s.arrives(session)
	s.clean(session)
}

// Regression 44: through two namespaces one name is two elections.
//
// Broken by a claim that does not know through which client.
func TestOneSessionInTwoNamespaces(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Admin)
	in := func(prefix string) func(*election.Config) {
		return func(cfg *election.Config) {
			cfg.KV, cfg.Watcher = namespace.NewKV(s.Admin, prefix), namespace.NewWatcher(s.Admin, prefix)
		}
	}
	one, two := s.lead(s.candidate("v", on(session), in("one/"))), s.lead(s.candidate("v", on(session), in("two/")))
	require.Equal(t, one.Key(), two.Key())
	require.NoError(t, one.Resign(s.Ctx))
	require.NoError(t, two.Err())
	require.NoError(t, two.Proclaim(s.Ctx, []byte("w")))

	// Two wrappers of one namespace have one key: one of them at a time.
	require.ErrorIs(t, etcdtest.Err(s.candidate("v", on(session), in("two/")).Campaign(s.Ctx)), eldest.ErrCampaigning, "two candidates with one key")
	require.NoError(t, two.Proclaim(s.Ctx, []byte("x")), "its key is there")
	require.NoError(t, two.Resign(s.Ctx))
	require.Greater(t, s.lead(s.candidate("v", on(session), in("two/"))).Token(), two.Token())
}

// Regression 45: a session is abandoned while the removal of a key is on its way, and
// resumed. The tenure of the resumed session must not be ended by that.
//
// Broken by remembering what is doomed for the session, and not for the lease.
func TestResumedTenureIsNotEndedByItsPast(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Admin)
	c, g := s.gated("v", on(session), soon)
	before := s.lead(c)
	held := make(chan func(), 1)
	g.hold(held)
	ctx, cancel := context.WithCancel(s.Ctx)
	resigned := etcdtest.Go(func() error { return before.Resign(ctx) })
	send := get(s, held)
	cancel()
	require.ErrorIs(t, get(s, resigned), context.Canceled)
	session.Abandon()
	require.NoError(t, c.Close(s.Ctx))

	resumed := s.resume(session)
	l := s.lead(s.candidate("v", on(resumed)))
	send()
	require.Equal(t, []string{l.Key()}, s.Queue(), "its own past has ended the resumed tenure")
	require.NoError(t, l.Proclaim(s.Ctx, []byte("w")))
	require.NoError(t, l.Err())
	require.Greater(t, l.Token(), before.Token())
}

// resume resumes a session that was abandoned.
func (s *stage) resume(session *lease.Session) *lease.Session {
	s.T.Helper()
	resumed, err := lease.Resume(s.Ctx, lease.Config{Lease: s.Admin}, session.ID())
	require.NoError(s.T, err)
	s.T.Cleanup(func() { require.NoError(s.T, resumed.Close(s.Ctx)) })
	return resumed
}

// A tenure that had ended stays over, although its key is there still: the resumed
// session has another one. A tenure that was going on is taken over.
func TestResumeTakesOverWhatHadNotEnded(t *testing.T) {
	s := newStage(t)
	r := newDenying(s.Admin)
	session := s.session(s.Admin)
	_, ended := s.leavesItsKey(r, session)
	session.Abandon()
	resumed := s.resume(session)
	l := s.lead(s.candidate("v", on(resumed)))
	require.Greater(t, l.Token(), ended.Token(), "the token of an earlier life")
	resumed.Abandon()
	require.Equal(t, l.Token(), s.lead(s.candidate("v", on(s.resume(resumed)))).Token())
}
