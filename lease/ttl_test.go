package lease

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
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
		assert.Equal(t, tc.want, got, "asked for %v", tc.ttl)
	}
	for ttl, text := range map[time.Duration]string{
		-1:                     "the TTL -1ns is negative",
		-10 * time.Second:      "the TTL -10s is negative",
		math.MinInt64:          "is negative",
		MaxTTL + 1:             "over the longest one allowed, 24h0m0s",
		365 * 24 * time.Hour:   "the TTL 8760h0m0s is over",
		math.MaxInt64:          "is over",
		10 * time.Second * 1e6: "is over", // seconds multiplied twice by a unit that is too small by a thousand
	} {
		_, err := seconds(ttl)
		require.ErrorIs(t, err, eldest.ErrInvalid, "a TTL of %v", ttl)
		require.ErrorContains(t, err, text)
	}
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
		require.ErrorIs(t, etcdtest.Err(marginOf(tc.wanted, tc.granted)), eldest.ErrInvalid, "%v of %v", tc.wanted, tc.granted)
	}
}
