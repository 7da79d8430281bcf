package election_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// transaction matches transactions on a key: they contain it where they compare it and where they
// write it. A request to watch the key contains it once, and may be sent at any time: the client
// repeats it whenever its connection was lost.
func transaction(key string) func(message []byte) bool {
	return func(message []byte) bool { return bytes.Count(message, []byte(key)) > 1 }
}

// The other replies that can be lost: to the proclaim, the proof and the deletion.
func TestOtherLostReplies(t *testing.T) {
	s := newEnv(t)
	elder, middle := s.candidate("elder"), s.candidate("middle")
	le := s.lead(elder)
	s.register(middle)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	c, waiting, waits := s.waitingFor("v", func(cfg *election.Config) { cfg.KV, cfg.Watcher = cli, cli })
	get(s, waits)

	swallow := host.SwallowNextReply(etcdtest.Containing("proclaimed"))
	require.ErrorIs(t, c.Proclaim(s.Ctx, []byte("proclaimed")), eldest.ErrOutcomeUnknown)
	require.NoError(t, swallow.Wait(s.Ctx))
	require.Equal(t, "proclaimed", s.value(c.Key()))

	older := func(message []byte) bool { // the read of the older candidates
		return bytes.Contains(message, []byte(c.Key())) && bytes.Contains(message, []byte(le.Key()))
	}
	swallow = host.SwallowNextReply(older)
	require.NoError(t, middle.Withdraw(s.Ctx))
	require.NoError(t, swallow.Wait(s.Ctx))
	require.NoError(t, le.Resign(s.Ctx))
	won := electiontest.Wins(t, waiting)

	swallow = host.SwallowNextReply(transaction(c.Key()))
	require.NoError(t, won.Resign(s.Ctx), "sent again until it is known")
	require.NoError(t, swallow.Wait(s.Ctx))
	require.Empty(t, s.Queue())
}

// G8: the context ends while the outcome of the registration is unknown. It arrives late, after the
// campaign was given up, and the background clean-up removes its key each time.
func TestLateRegistrationLeavesNoKey(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	c, g := s.gated("v", on(session))
	s.lost(c, g)
	require.Empty(t, s.Queue())

	var late eldest.Token
	for range 3 {
		late = s.arrives(session)
		s.Until("no ghost", func() bool { return len(s.Queue()) == 0 })
	}
	require.NoError(t, session.Err(), "not with its lease")

	// A new campaign has a new key, which the background clean-up does not remove.
	l := s.lead(c)
	require.Greater(t, l.Token(), late)
	require.NoError(t, l.Proclaim(s.Ctx, []byte("w")))
	require.NoError(t, c.Close(s.Ctx))
	require.Empty(t, s.Queue())

	// A later registration is removed too: the session remembers.
	s.arrives(session)
	s.queued(0)
}

// G8: the same if the watch of the clean-up receives nothing, as happens to streams in networks
// that delay registrations. A liveness check of the watch detects it.
//
// Fails if the clean-up's watch has no liveness check.
func TestLateRegistrationIsSweptThoughTheWatchIsDeaf(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	c, g := s.gated("v", on(session), func(cfg *election.Config) {
		cfg.Watcher = etcdtest.Deaf(s.Client)
		cfg.WatchCheck, cfg.Timeout = 50*time.Millisecond, 200*time.Millisecond
	})
	s.lost(c, g)
	// During the first liveness check the removal and the initial read are over: neither can have
	// found a registration that arrives now.
	s.Until("the sweep is under way", func() bool { return s.Rec.Count("Range") >= 3 })
	s.arrives(session)
	s.clean(session)
}

// The reply to a registration behind an elder is lost: its position is returned nevertheless.
func TestLostReplyWhileQueueing(t *testing.T) {
	s := newEnv(t)
	elder := s.lead(s.candidate("elder"))
	c, host := s.behind("v")
	swallow := host.SwallowNextReply(transaction(c.Key()))
	place := s.register(c)
	require.NoError(t, swallow.Wait(s.Ctx))
	require.Equal(t, elder.Key(), place.Predecessor)

	// Try, whose first reply is lost, returns the correct error too.
	d, host := s.behind("d")
	swallow = host.SwallowNextReply(transaction(d.Key()))
	require.ErrorIs(t, etcdtest.Err(d.Try(s.Ctx)), eldest.ErrNotElected)
	require.NoError(t, swallow.Wait(s.Ctx))
	require.Equal(t, []string{elder.Key(), c.Key()}, s.Queue())
}
