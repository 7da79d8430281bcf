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
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/txn"
)

// To adopt a key with another value takes a second request. A transient error of it must not cost
// the position, nor, after a Resume, the leadership.
//
// Fails if adopt proclaims once, without the policy's Until.
func TestAdoptingOutlastsAPassingError(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	before := s.lead(s.candidate("before", on(session)))
	session.Abandon()
	c, g := s.gated("after", on(s.resume(session)))
	met := make(chan struct{})
	g.on(nil, func(_ context.Context, err error) error { // the registration finds the key
		g.on(func(context.Context) error { close(met); return rpctypes.ErrLeaderChanged }, nil)
		return err
	})
	l := s.lead(c)
	get(s, met)
	require.Equal(t, before.Token(), l.Token(), "the same tenure")
	require.Equal(t, "after", s.value(c.Key()))
}

// leavesItsKey has a candidate lead whose key etcd then refuses to remove: for Resign, for Close,
// and in the background.
func (s *env) leavesItsKey(r *denying, session *lease.Session) (*election.Candidate, *election.Leadership) {
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

// G2 and G4: the key of an ended tenure is not adopted by any later candidate. The session
// remembers the keys that its candidates have left: a guarded write of an ended tenure that is
// still on its way must not find its token in a later tenure.
//
// Fails if only the candidate, and not the lease, remembers doomed tokens.
func TestKeyOfAnEndedTenureIsNotAdoptedByTheNextCandidate(t *testing.T) {
	s := newEnv(t)
	r := newDenying(s.Admin)
	session := s.session(s.Admin)
	_, first := s.leavesItsKey(r, session)
	ended := []*election.Leadership{first}

	// A candidate with a client of its own, which may remove the key, does not lead with it.
	other := s.lead(s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = newDenying(s.Admin) }))
	require.Greater(t, other.Token(), first.Token(), "an earlier candidate's token")
	require.NoError(t, other.Resign(s.Ctx))
	r.now.Store(false)
	_, again := s.leavesItsKey(r, session)
	ended = append(ended, again)

	// A candidate that may not remove the key does not lead with it either, and the session
	// continues to remember it.
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

// Regression 42: a refusal is one failed attempt. Resign, Withdraw and Close ask etcd again each
// time, and the background clean-up continues.
//
// Fails if the first answer is kept, or if the clean-up ends at a refusal.
func TestRefusedRemovalIsTriedAgain(t *testing.T) {
	t.Run("by the caller", func(t *testing.T) {
		s := newEnv(t)
		r := newDenying(s.Admin)
		never := func(cfg *election.Config) {
			cfg.KV, cfg.Backoff = r, func(int) time.Duration { return time.Hour } // the background clean-up
		}
		resigns, closes, withdraws := s.candidate("v", never), s.candidate("v", never), s.candidate("v", never)
		l := s.lead(resigns)
		s.register(closes)
		s.register(withdraws)
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
		s := newEnv(t)
		r := newDenying(s.Admin)
		session := s.session(s.Admin)
		s.leavesItsKey(r, session)
		r.now.Store(false)
		s.clean(session)
	})
}

// Regression 42: a late registration arrives while etcd refuses to remove anything.
//
// Fails if the background clean-up ends at a refusal.
func TestSweepOutlivesARefusal(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	r := newDenying(s.Admin)
	g := newGate(r)
	c := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = g })
	s.lost(c, g)
	require.NoError(t, c.Close(s.Ctx), "nothing has arrived, so nothing is left")

	r.now.Store(true)
	s.arrives(session)
	s.Until("the removal was refused", func() bool { return r.n.Load() >= 2 })
	r.now.Store(false)
	s.clean(session)
}

// lost loses a candidate's registration on its way, or has it arrive late, and ends its campaign.
func (s *env) lost(c *election.Candidate, g *gate) {
	s.T.Helper()
	ctx, cancel := context.WithCancel(s.Ctx)
	g.lose(cancel)
	require.ErrorIs(s.T, etcdtest.Err(c.Campaign(ctx)), context.Canceled)
}

// arrives applies a registration that was sent earlier, and returns its token.
func (s *env) arrives(session *lease.Session) eldest.Token {
	s.T.Helper()
	place, err := txn.ByCreateRevision{}.Enter(s.Ctx, s.Admin, txn.Entry{Election: s.Election, Lease: int64(session.ID()), Value: []byte("v")})
	require.NoError(s.T, err)
	require.False(s.T, place.Adopted)
	return place.Token
}

// Regression 41: a registration arrives late, and the request that removes it is delayed. A new
// campaign must not lead with that token: the request would end its tenure, and the next candidate
// would lead beside a leader that has not noticed the end yet. With the same client the campaign
// waits for the removal; with another client it finds the key, and must know that its token is
// doomed.
//
// Fails if the background clean-up does not doom the token before it sends the request.
func TestDoomedTokenIsNotAdopted(t *testing.T) {
	for name, client := range map[string]func(*env, clientv3.KV) clientv3.KV{
		"through the same client": func(_ *env, kv clientv3.KV) clientv3.KV { return kv },
		"through another client":  func(s *env, _ clientv3.KV) clientv3.KV { return s.Client },
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			session := s.session(s.Admin)
			c, g := s.gated("v", on(session), soon)
			s.lost(c, g)
			require.NoError(t, c.Close(s.Ctx), "the sweep is what is left")

			held := g.hold()
			late := s.arrives(session)
			send := get(s, held) // the clean-up has found it
			l := s.lead(s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = client(s, g) }))
			next := s.candidate("next")
			s.register(next)
			send()
			require.Equal(t, []string{l.Key(), next.Key()}, s.Queue(), "its own past has ended the tenure")
			require.Greater(t, l.Token(), late)
			require.NoError(t, l.Proclaim(s.Ctx, []byte("w")))
			require.NoError(t, l.Err())
		})
	}
}

// Regression 04: the key is deleted by hand while the first of two registrations, whose outcome is
// unknown, is still on its way. When it arrives its key is removed.
//
// Fails if a deposed candidate does not watch for late registrations.
func TestLateRegistrationOfADeposedCandidate(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	c, g := s.gated("v", on(session), soon)
	g.lose(func() {})
	l := s.lead(c)
	require.NoError(t, etcdtest.Err(s.Admin.Delete(s.Ctx, c.Key())))
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
	s.arrives(session)
	s.clean(session)
}

// Regression 44: one name in two namespaces is two elections.
//
// Fails if a claim does not contain the client.
func TestOneSessionInTwoNamespaces(t *testing.T) {
	s := newEnv(t)
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

	// Two wrappers of one namespace have one key: one candidate at a time may campaign.
	require.ErrorIs(t, etcdtest.Err(s.candidate("v", on(session), in("two/")).Campaign(s.Ctx)), eldest.ErrCampaigning, "two candidates with one key")
	require.NoError(t, two.Proclaim(s.Ctx, []byte("x")), "its key is there")
	require.NoError(t, two.Resign(s.Ctx))
	three := s.lead(s.candidate("v", on(session), in("two/")))
	require.Greater(t, three.Token(), two.Token())

	// With a directory namespace a candidate waits, wins and writes as usual.
	_, waiting, waits := s.waitingFor("v", in("two/"))
	get(s, waits)
	s.Remove("two/" + three.Key())
	require.ErrorIs(t, s.over(three), eldest.ErrDeposed)
	won := electiontest.Wins(t, waiting)
	require.NoError(t, etcdtest.Err(won.Txn(s.Ctx).Then(clientv3.OpPut("data", "x")).Commit()))
	s.Remove("two/data")
}

// Regression 45: a session is abandoned while the removal of a key is on its way, and is resumed.
// The removal must not end the tenure of the resumed session.
//
// Fails if the session, and not the lease, remembers doomed tokens.
func TestResumedTenureIsNotEndedByItsPast(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	c, g := s.gated("v", on(session))
	before := s.lead(c)
	held := g.hold()
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
func (s *env) resume(session *lease.Session) *lease.Session {
	s.T.Helper()
	resumed, err := lease.Resume(s.Ctx, lease.Config{Lease: s.Admin}, session.ID())
	require.NoError(s.T, err)
	s.T.Cleanup(func() { require.NoError(s.T, resumed.Close(s.Ctx)) })
	return resumed
}

// A tenure that had ended stays over although its key still exists: the resumed session has a new
// one. A tenure that had not ended is taken over.
func TestResumeTakesOverWhatHadNotEnded(t *testing.T) {
	s := newEnv(t)
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

// resignedInVain returns a candidate whose tenure has ended while its key still exists, because
// etcd refused to remove it. Its background clean-up pauses for an hour.
func (s *env) resignedInVain(r *denying, kv clientv3.KV) (*election.Candidate, *election.Leadership) {
	s.T.Helper()
	c := s.candidate("v", on(s.session(s.Admin)), func(cfg *election.Config) {
		cfg.KV, cfg.Backoff = kv, func(int) time.Duration { return time.Hour }
	})
	l := s.lead(c)
	r.now.Store(true)
	require.ErrorIs(s.T, l.Resign(s.Ctx), rpctypes.ErrPermissionDenied)
	r.now.Store(false)
	require.Equal(s.T, []string{c.Key()}, s.Queue())
	return c, l
}

// G2 and G4: the key of an earlier tenure still exists when the candidate campaigns again. If it
// were adopted, the old token would be valid again, and with it the guarded writes of the first
// tenure that are still on their way.
//
// Two rules prevent that: nothing is registered before the old key is deleted, and a key with a
// doomed token is not adopted.
func TestKeyOfAnEndedTenureIsNotAdopted(t *testing.T) {
	s := newEnv(t)
	r := newDenying(s.Client)
	c, first := s.resignedInVain(r, r)
	second := s.lead(c)
	require.Greater(t, second.Token(), first.Token(), "the token of an earlier life")
	require.Equal(t, []string{c.Key()}, s.Queue())

	late := txn.Guard{Election: s.Election, Key: first.Key(), Token: first.Token()}
	require.ErrorIs(t, etcdtest.Err(late.KV(s.Admin).Put(s.Ctx, t.Name(), "of the first tenure")), eldest.ErrDeposed)
	require.NoError(t, second.Err())
}

// G8: the campaign's context ends when that old key is about to be removed. There is no candidate
// then, so the key is removed in the background.
//
// Fails if the background clean-up only handles registrations of unknown outcome.
func TestKeyOfAnEndedTenureGoesThoughItsCandidateGivesUp(t *testing.T) {
	s := newEnv(t)
	r := newDenying(s.Client)
	g := newGate(r)
	c, _ := s.resignedInVain(r, g)
	ctx, cancel := context.WithCancel(s.Ctx)
	given := make(chan struct{})
	g.on(func(context.Context) error { cancel(); <-given; return nil }, nil) // the removal
	_, err := c.Campaign(ctx)
	close(given)
	require.ErrorIs(t, err, context.Canceled)
	s.queued(0)
}

// The caller and the background clean-up remove the same key one at a time: while the request of
// the clean-up is on its way, a caller that asks again waits for its reply and sends no request.
//
// Fails if the clean-up does not use the mutex.
func TestOneRemovalAtATime(t *testing.T) {
	s := newEnv(t)
	var leaving atomic.Bool
	var sent atomic.Int64
	held, release := make(chan struct{}), make(chan struct{})
	kv := etcdtest.WithTxns(s.Admin, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if leaving.Load() {
			switch sent.Add(1) {
			case 1: // the caller's
				return nil, rpctypes.ErrPermissionDenied
			case 2: // the clean-up's
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
	etcdtest.Never(t, func() bool { return sent.Load() > 2 || len(again) > 0 }, 300*time.Millisecond, "a second request")
	close(release)
	require.NoError(t, <-again)
	require.EqualValues(t, 2, sent.Load())
	require.Empty(t, s.Queue())
}
