package lease

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
)

func TestSecondsRoundUp(t *testing.T) {
	for _, tc := range []struct {
		ttl  time.Duration
		want int64
	}{
		{0, 10},
		{1, 1},
		{time.Millisecond, 1},
		{900 * time.Millisecond, 1},
		{time.Second, 1},
		{time.Second + 1, 2},
		{1900 * time.Millisecond, 2},
		{10 * time.Second, 10},
		{MaxTTL - time.Second + 1, 86400},
		{MaxTTL, 86400},
	} {
		got, err := seconds(tc.ttl)
		require.NoError(t, err, tc.ttl)
		assert.Equal(t, tc.want, got, tc.ttl)
	}
	for ttl, text := range map[time.Duration]string{
		-1:                     "the TTL -1ns is negative",
		-10 * time.Second:      "the TTL -10s is negative",
		math.MinInt64:          "is negative",
		MaxTTL + 1:             "over the longest one allowed, 24h0m0s",
		365 * 24 * time.Hour:   "the TTL 8760h0m0s is over",
		math.MaxInt64:          "is over",
		10 * time.Second * 1e6: "is over", // seconds in a unit too small by a thousand, twice
	} {
		_, err := seconds(ttl)
		require.ErrorIs(t, err, eldest.ErrInvalid)
		require.ErrorContains(t, err, text)
	}
}

func TestSecondsNeverAskForLess(t *testing.T) {
	require.NoError(t, quick.Check(func(n uint64) bool {
		ttl := time.Duration(n%uint64(MaxTTL)) + 1
		got, err := seconds(ttl)
		granted := time.Duration(got) * time.Second
		return err == nil && granted >= ttl && granted-ttl < time.Second
	}, nil))
}

func TestMargin(t *testing.T) {
	for _, tc := range []struct{ wanted, granted, want time.Duration }{
		{0, time.Second, MinMargin},
		{0, 2 * time.Second, MinMargin},
		{0, 3 * time.Second, 300 * time.Millisecond},
		{0, 10 * time.Second, time.Second},
		{0, MaxTTL, MaxTTL / 10},
		{1, time.Second, 1},
		{3 * time.Second, 4 * time.Second, 3 * time.Second},
		{time.Second - 1, time.Second, time.Second - 1},
	} {
		got, err := marginOf(tc.wanted, tc.granted)
		require.NoError(t, err)
		assert.Equal(t, tc.want, got, "%v of %v", tc.wanted, tc.granted)
	}
	for _, tc := range []struct{ wanted, granted time.Duration }{
		{-1, time.Second}, {time.Second, time.Second}, {time.Minute, time.Second},
		{0, MinMargin}, {0, 0}, {0, -time.Second},
	} {
		_, err := marginOf(tc.wanted, tc.granted)
		require.ErrorIs(t, err, eldest.ErrInvalid, "%v of %v", tc.wanted, tc.granted)
	}
}

func TestDeadlineTable(t *testing.T) {
	const s = time.Second
	d := deadlineAfter(100*s, 10*s, s)
	for _, tc := range []struct {
		now    time.Duration
		passed bool
		left   time.Duration
	}{
		{0, false, 109 * s},
		{100 * s, false, 9 * s},
		{109*s - 1, false, 1},
		{109 * s, true, 0}, // the first instant that is not certain
		{109*s + 1, true, 0},
		{time.Hour, true, 0},
	} {
		assert.Equal(t, tc.passed, d.passed(tc.now), tc.now)
		assert.Equal(t, tc.left, d.left(tc.now), tc.now)
	}
	for name, tc := range map[string]struct {
		sent, received, granted time.Duration
		next                    deadline
		ok                      bool
	}{
		"at once":                  {103 * s, 103 * s, 10 * s, deadline(112 * s), true},
		"counted from sending":     {103 * s, 108 * s, 10 * s, deadline(112 * s), true},
		"read in the last instant": {103 * s, 109*s - 1, 10 * s, deadline(112 * s), true},
		"read at the deadline":     {103 * s, 109 * s, 10 * s, d, false},
		"read long after it":       {103 * s, 200 * s, 10 * s, d, false},
		"sent and read after it":   {150 * s, 150 * s, 10 * s, d, false},
		"a longer TTL":             {103 * s, 103 * s, 60 * s, deadline(162 * s), true},
		"a shorter TTL":            {103 * s, 103 * s, 3 * s, deadline(105 * s), true},
		"a shorter TTL, read late": {103 * s, 108 * s, 3 * s, deadline(105 * s), true},
	} {
		next, ok := d.renewed(tc.sent, tc.received, tc.granted, s)
		assert.Equal(t, tc.ok, ok, name)
		assert.Equal(t, tc.next, next, name)
	}
}

// TestDeadlineNeverBeyondExpiry plays renewals against a server that counts from
// the moment at which it handles them, with clocks whose rates differ by less than
// margin / TTL: whenever the client believes, the server has not expired.
func TestDeadlineNeverBeyondExpiry(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		ttl := time.Duration(1+r.Int64N(30)) * time.Second
		margin, err := marginOf(0, ttl)
		require.NoError(t, err)
		// The client's clock shows rate * server time.
		drift := 0.99 * float64(margin) / float64(ttl)
		rate := 1 - drift + 2*drift*r.Float64()
		client := func(server time.Duration) time.Duration { return time.Duration(float64(server) * rate) }

		now := time.Duration(r.Int64N(int64(time.Hour))) // on the server's clock
		sent := now
		now += time.Duration(r.Int64N(int64(ttl / 4)))
		expiry := now + ttl // the server counts from handling
		d := deadlineAfter(client(sent), ttl, margin)
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
					d, _ = d.renewed(client(sent), client(now), ttl, margin)
				}
			}
			if !d.passed(client(now)) {
				require.Less(t, now, expiry, "seed %d, TTL %v, rate %v", seed, ttl, rate)
			}
		}
	}
}

func TestDeadlineProperties(t *testing.T) {
	readings := func(a, b, c uint32) (x, y, z time.Duration) {
		const unit = time.Millisecond
		return time.Duration(a) * unit, time.Duration(b) * unit, time.Duration(c) * unit
	}
	// left and passed tell the same.
	require.NoError(t, quick.Check(func(a, b uint32) bool {
		d, now, _ := readings(a, b, 0)
		return deadline(d).passed(now) == (deadline(d).left(now) == 0) && deadline(d).left(now) >= 0
	}, nil))
	// A reply that is read after the deadline never moves it; another one always
	// moves it to the instant that counts from sending, however late it is read.
	require.NoError(t, quick.Check(func(a, b, c uint32) bool {
		old, sent, under := readings(a, b, c)
		received := sent + under
		next, ok := deadline(old).renewed(sent, received, 10*time.Second, time.Second)
		if deadline(old).passed(received) {
			return !ok && next == deadline(old)
		}
		return ok && next == deadline(sent+9*time.Second)
	}, nil))
}
