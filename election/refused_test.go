package election_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/txn"
)

// If the queue cannot be read at the revision of the predecessor's deletion, its newest state is
// read at once.
func TestProofWhereThePastCannotBeRead(t *testing.T) {
	for name, err := range map[string]error{"future": rpctypes.ErrFutureRev, "compacted": rpctypes.ErrCompacted} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			paused := make(chan int, 10)
			elder, middle := s.lead(s.candidate("elder")), s.candidate("middle")
			s.register(middle)
			c := s.candidate("v", func(cfg *election.Config) {
				cfg.Ordering = ordering{
					Ordering: txn.ByCreateRevision{},
					ahead: func(_ context.Context, at int64, read reading) (txn.Position, error) {
						if at > 0 {
							return txn.Position{}, err
						}
						return read()
					},
				}
				cfg.Backoff = func(attempt int) time.Duration { paused <- attempt; return 0 }
			})
			s.register(c)
			require.NoError(t, middle.Withdraw(s.Ctx))
			waiting := s.awaiting(c)
			require.NoError(t, elder.Resign(s.Ctx))
			electiontest.Wins(t, waiting)
			require.Empty(t, paused, "without a pause")
		})
	}
}

// A permanent refusal ends the operation at once, and leaves no key.
func TestRefusalsAreFinal(t *testing.T) {
	t.Parallel()
	denied := rpctypes.ErrPermissionDenied
	refuse := func(context.Context) error { return denied }
	t.Run("registration", func(t *testing.T) {
		s := newEnv(t)
		c, g := s.gated("v")
		g.on(func(context.Context) error { // with the pointer, and without
			g.on(refuse, nil)
			return denied
		}, nil)
		_, err := c.Campaign(s.Ctx)
		require.ErrorIs(t, err, denied)
		require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
		require.NoError(t, s.lead(c).Err(), "the next one is free")
	})
	t.Run("the program's own queue", func(t *testing.T) {
		s := newEnv(t)
		c := s.candidate("v", by(ordering{Ordering: txn.ByCreateRevision{}, enter: func() error { return eldest.ErrInvalid }}))
		require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrInvalid)
		l, err := c.Try(s.Ctx)
		require.NoError(t, err, "the next one is free")
		require.NoError(t, l.Resign(s.Ctx))
	})
	t.Run("lease gone", func(t *testing.T) {
		s := newEnv(t)
		c, g := s.gated("v")
		g.on(func(context.Context) error { return rpctypes.ErrLeaseNotFound }, nil)
		require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrSessionLost)
	})
	t.Run("question", func(t *testing.T) {
		s := newEnv(t)
		elder, middle := s.candidate("elder"), s.candidate("middle")
		s.lead(elder)
		s.register(middle)
		c, g := s.gated("v")
		s.register(c)
		g.on(refuse, nil)
		require.NoError(t, middle.Withdraw(s.Ctx))
		require.ErrorIs(t, etcdtest.Err(c.Await(s.Ctx)), denied)
		s.queued(1)
	})
}

// F14: etcd runs out of space. It checks its quota while it applies a write: the write that exceeds
// the quota is applied and then refused with the same error as all later ones. So a refusal for
// lack of space does not say whether the write was applied.
//
// G4: a guarded write that returns a definite failure was not applied. G8: a registration that
// fails leaves no key, although the session continues: deletions need no space.
//
// Fails if internal/rpcerr counts ErrNoSpace as definite.
func TestRefusedForSpaceIsUnknown(t *testing.T) {
	s := newEnv(t)
	c := etcdtest.Start(t, etcdtest.Config{Settings: map[string]any{"quota-backend-bytes": 4 << 20}})
	s.Client, s.Admin = c.Client(t), c.Client(t)
	session := s.session(s.Client)
	kv := s.lead(s.candidate("v")).KV()
	value := strings.Repeat("x", 20<<10)
	there := func(key string) bool { _, absent := s.Value(key); return !absent }
	var written, registered sync.Map // the failed requests: the error by the key
	var all sync.WaitGroup
	const each = 64 // several are at the quota at once
	for i := range each {
		all.Go(func() {
			for j := 0; ; j++ {
				key := fmt.Sprintf("%02d-%d", i, j)
				if err := etcdtest.Err(kv.Put(s.Ctx, key, value)); err != nil {
					written.Store(key, err)
					return
				}
			}
		})
		all.Go(func() {
			for j := 0; ; j++ { // in separate elections: one queue would grow long
				c, err := election.New(election.Config{
					Election: fmt.Sprintf("%s %02d-%d", s.Election, i, j), Session: session, KV: s.Client, Watcher: s.Client, Value: []byte(value),
				})
				if err == nil {
					err = etcdtest.Err(c.Register(s.Ctx))
				}
				if err != nil {
					registered.Store(c.Key(), err)
					return
				}
			}
		})
	}
	all.Wait()
	unknown := func(err any) {
		t.Helper()
		require.True(t, rpcerr.Is(err.(error), rpctypes.ErrNoSpace), "%v", err)
		require.ErrorIs(t, err.(error), eldest.ErrOutcomeUnknown)
	}
	refused, applied := 0, 0
	for key, err := range written.Range {
		unknown(err) // of all: the error does not say which write it was
		refused++
		if there(key.(string)) {
			applied++
		}
	}
	require.Equal(t, each, refused)
	// Usually nearly all of them; none, if etcd noticed between two writes.
	t.Logf("%d of %d that were refused had been carried out", applied, refused)
	for key, err := range registered.Range {
		unknown(err)
		s.Until("nothing is left of it", func() bool { return !there(key.(string)) })
		refused--
	}
	require.Zero(t, refused)
	require.NoError(t, session.Err(), "not with its lease")
}

// The end of a session is visible at once, even before the watch of the candidate's key has ended:
// no call takes an ended tenure for a current one.
func TestCallsJustAfterTheSession(t *testing.T) {
	s := newEnv(t)
	for range 10 {
		session := s.session(s.Client)
		c := s.candidate("v", on(session))
		l := s.lead(c)
		session.Abandon()
		_, err := c.Campaign(s.Ctx)
		require.ErrorIs(t, err, eldest.ErrClosed)
		require.NotErrorIs(t, err, eldest.ErrLeading)
		require.ErrorIs(t, c.Proclaim(s.Ctx, nil), eldest.ErrNotRegistered)
		require.ErrorIs(t, c.Withdraw(s.Ctx), eldest.ErrNotRegistered)
		require.Zero(t, c.Status())
		require.ErrorIs(t, l.Err(), eldest.ErrClosed)
		require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
	}
}
