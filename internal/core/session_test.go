package core_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

const s = time.Second

// held is a session that was granted at 100 s, for ten seconds with a margin of one second.
func held() core.Session {
	r := core.Rhythm{TTL: 10 * s, Margin: s, Every: 2 * s, Timeout: s}
	return core.Opened(r, 100*s, 100*s, 2*s, false)
}

// renew takes a session through a renewal that is sent and answered at these readings.
func renew(c core.Session, sent, received time.Duration, granted core.Rhythm) core.Session {
	c.Next = sent
	c, _ = core.StepSession(c, core.SessionEvent{Kind: core.Clock, Now: sent})
	c, _ = core.StepSession(c, core.SessionEvent{Kind: core.Renewed, Now: received, Rhythm: granted})
	c, _ = core.StepSession(c, core.SessionEvent{Kind: core.Rested, Now: received})
	return c
}

func TestDeadlineTable(t *testing.T) {
	for _, tc := range []struct {
		now   time.Duration
		ended bool
	}{
		{0, false},
		{100 * s, false},
		{109*s - 1, false},
		{109 * s, true}, // the first instant that is not certain
		{109*s + 1, true},
		{time.Hour, true},
	} {
		next, effects := core.StepSession(held(), core.SessionEvent{Kind: core.Clock, Now: tc.now})
		assert.Equal(t, tc.ended, next.Stage == core.Ended, tc.now)
		assert.Equal(t, tc.ended, effects.Ended, tc.now)
	}
	for name, tc := range map[string]struct {
		sent, received, granted time.Duration
		next                    time.Duration // 0: it has ended
	}{
		"at once":                  {103 * s, 103 * s, 10 * s, 112 * s},
		"counted from sending":     {103 * s, 108 * s, 10 * s, 112 * s},
		"read in the last instant": {103 * s, 109*s - 1, 10 * s, 112 * s},
		"read at the deadline":     {103 * s, 109 * s, 10 * s, 0},
		"read long after it":       {103 * s, 200 * s, 10 * s, 0},
		"sent and read after it":   {150 * s, 150 * s, 10 * s, 0},
		"a longer TTL":             {103 * s, 103 * s, 60 * s, 162 * s},
		"a shorter TTL":            {103 * s, 103 * s, 3 * s, 105 * s},
		"a shorter TTL, read late": {103 * s, 108 * s, 3 * s, 0},
	} {
		next := renew(held(), tc.sent, tc.received, core.Rhythm{TTL: tc.granted, Margin: s})
		assert.Equal(t, tc.next == 0, next.Stage == core.Ended, name)
		if tc.next != 0 {
			assert.Equal(t, tc.next, next.Deadline, name)
		}
	}
}

// TestDeadlineNeverBeyondExpiry simulates renewals at a server that counts from the moment at which
// it handles them, with clocks whose rates differ by less than margin / TTL. Whenever the session
// counts on its lease, the server has not expired it.
func TestDeadlineNeverBeyondExpiry(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		ttl := time.Duration(1+r.Int64N(30)) * s
		rhythm := core.Rhythm{TTL: ttl, Margin: max(ttl/10, 200*time.Millisecond), Every: ttl / 4, Timeout: ttl / 12}
		// The client's clock shows rate * server time.
		drift := 0.99 * float64(rhythm.Margin) / float64(ttl)
		rate := 1 - drift + 2*drift*r.Float64()
		client := func(server time.Duration) time.Duration { return time.Duration(float64(server) * rate) }

		now := time.Duration(r.Int64N(int64(time.Hour))) // on the server's clock
		sent := now
		now += time.Duration(r.Int64N(int64(ttl / 4)))
		expiry := now + ttl // the server counts from handling
		c := core.Opened(rhythm, client(sent), client(now), 0, false)
		for range 50 {
			now += time.Duration(r.Int64N(int64(ttl / 2)))
			sent := now
			if now < expiry {
				now += time.Duration(r.Int64N(int64(ttl / 2))) // to the server
				handled := now < expiry
				if handled {
					expiry = now + ttl
				}
				now += time.Duration(r.Int64N(int64(ttl / 2))) // and back
				if handled {
					c = renew(c, client(sent), client(now), rhythm)
				}
			}
			c, _ = core.StepSession(c, core.SessionEvent{Kind: core.Clock, Now: client(now)})
			if c.Stage != core.Ended {
				require.Less(t, now, expiry, "seed %d, TTL %v, rate %v", seed, ttl, rate)
			}
			c, _ = core.StepSession(c, core.SessionEvent{Kind: core.Failed, Now: client(now)})
			c, _ = core.StepSession(c, core.SessionEvent{Kind: core.Rested, Now: client(now)})
		}
	}
}

// A request that is not answered is sent a second time after half of its time, and given up at its
// end. Nothing is renewed for an application that does not respond.
func TestTimeouts(t *testing.T) {
	step := func(c core.Session, e core.SessionEvent) (core.Session, core.SessionEffects) {
		next, effects := core.StepSession(c, e)
		return next, effects
	}
	c, effects := step(held(), core.SessionEvent{Kind: core.Clock, Now: 102 * s})
	require.True(t, effects.Renew)
	require.Equal(t, 102*s+s/2, effects.Timer)
	require.Equal(t, s, effects.Timeout)
	c, effects = step(c, core.SessionEvent{Kind: core.Clock, Now: 102*s + s/2 - 1})
	require.False(t, effects.Again)

	silent := errors.New("silent")
	hung, _ := step(c, core.SessionEvent{Kind: core.Clock, Now: 102*s + s/2, Silent: silent})
	require.Equal(t, core.Pausing, hung.Stage)
	require.ErrorIs(t, hung.Reason, silent)

	c, effects = step(c, core.SessionEvent{Kind: core.Clock, Now: 102*s + s/2})
	require.True(t, effects.Again)
	require.Equal(t, s/2, effects.Timeout)
	require.Equal(t, 103*s, effects.Timer)
	c, effects = step(c, core.SessionEvent{Kind: core.Clock, Now: 103*s - 1})
	require.False(t, effects.Again, "twice is enough")
	c, effects = step(c, core.SessionEvent{Kind: core.Clock, Now: 103 * s})
	require.True(t, effects.AtRisk)
	require.True(t, effects.Pause)
	require.ErrorIs(t, c.Reason, eldest.ErrUnavailable)
	c, _ = step(c, core.SessionEvent{Kind: core.Rested, Now: 103 * s, Pause: s})
	require.Equal(t, 104*s, c.Next)
}

// Renewals are sent together a tenth of the interval before they are due, and not after a failure.
func TestTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		now      time.Duration
		failures int
		renews   bool
	}{
		"too early":       {102*s - s/5 - 1, 0, false},
		"nearly due":      {102*s - s/5, 0, true},
		"after a failure": {102*s - 1, 1, false},
	} {
		c := held()
		c.Failures = tc.failures
		_, effects := core.StepSession(c, core.SessionEvent{Kind: core.Together, Now: tc.now})
		require.Equal(t, tc.renews, effects.Renew, name)
	}
}

// If the time-out is longer than the rest of the lease, the renewal is not sent again after the
// deadline: it would extend a lease that the session no longer counts on.
func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	c := held()
	c.Next = 109*s - s/10
	c, _ = core.StepSession(c, core.SessionEvent{Kind: core.Clock, Now: c.Next})
	require.Equal(t, core.Renewing, c.Stage)
	c, effects := core.StepSession(c, core.SessionEvent{Kind: core.Clock, Now: c.Next + s/2})
	require.False(t, effects.Again, "sent once more")
	require.Equal(t, core.Ended, c.Stage)
}

// A reply that is read after the deadline never moves the deadline. Any other reply always moves it
// to the instant that counts from sending, however late it is read.
func TestDeadlineProperties(t *testing.T) {
	require.NoError(t, quick.Check(func(a, b, c uint32) bool {
		const unit = time.Millisecond
		old := held()
		old.Deadline = time.Duration(a) * unit
		sent := time.Duration(b) * unit
		received := sent + time.Duration(c)*unit
		next := renew(old, sent, received, core.Rhythm{TTL: 10 * s, Margin: s})
		if received >= old.Deadline || received >= sent+9*s {
			return next.Stage == core.Ended
		}
		return next.Stage == core.Resting && next.Deadline == sent+9*s
	}, nil))
}
