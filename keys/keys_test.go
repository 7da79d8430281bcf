package keys_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		election string
		wrong    string // part of the message; empty: the name is valid
	}{
		"one byte":            {"a", ""},
		"words":               {"orders-leader.v2", ""},
		"any bytes":           {"\x00\xff \n\t\x7f", ""},
		"only 0xFF":           {"\xff\xff", ""},
		"not UTF-8":           {"\xc3\x28", ""},
		"the longest":         {strings.Repeat("x", keys.MaxName), ""},
		"empty":               {"", "no name"},
		"too long":            {strings.Repeat("x", keys.MaxName+1), "1025 bytes, at most 1024"},
		"nested":              {"a/b", `"a/b" contains '/'`},
		"leading slash":       {"/leader", `"/leader" contains '/'`},
		"trailing slash":      {"svc/", `"svc/" contains '/'`},
		"slash alone":         {"/", "contains '/'"},
		"control bytes shown": {"a\x1b[2J/", `"a\x1b[2J/"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := keys.Check(tc.election)
			if tc.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, eldest.ErrInvalid)
			require.ErrorContains(t, err, tc.wrong)
			require.NotContains(t, err.Error(), "\x1b", "a name reaches the terminal raw")
		})
	}
}

func TestCandidateKey(t *testing.T) {
	for _, tc := range []struct {
		election string
		lease    int64
		key      string
	}{
		{"svc", 1, "svc/1"},
		{"svc", 0x2a, "svc/2a"},
		{"svc", 0x694d7a1d8c3f0b05, "svc/694d7a1d8c3f0b05"},
		{"svc", math.MaxInt64, "svc/7fffffffffffffff"},
		{"\xff", 16, "\xff/10"},
		{"a\x00b", 255, "a\x00b/ff"},
	} {
		assert.Equal(t, tc.key, keys.Candidate(tc.election, tc.lease))
		lease, err := keys.Parse(tc.election, tc.key)
		require.NoError(t, err)
		assert.Equal(t, tc.lease, lease)
		begin, end := keys.Range(tc.election)
		assert.True(t, begin <= tc.key && tc.key < end, "%q is not in [%q, %q)", tc.key, begin, end)
	}
}

func TestParseRefusesForeignKeys(t *testing.T) {
	for name, key := range map[string]string{
		"empty":             "",
		"the name":          "svc",
		"the prefix":        "svc/",
		"another election":  "other/1",
		"a longer name":     "svcx/1",
		"a shorter name":    "sv/1",
		"nested":            "svc/a/1",
		"upper case":        "svc/2A",
		"padded":            "svc/002a",
		"zero":              "svc/0",
		"negative":          "svc/-1",
		"explicit sign":     "svc/+1",
		"0x":                "svc/0x2a",
		"underscore":        "svc/1_0",
		"space":             "svc/ 1",
		"newline":           "svc/1\n",
		"over 63 bits":      "svc/8000000000000000",
		"far over 64 bits":  "svc/" + strings.Repeat("f", 40),
		"NUL":               "svc/1\x00",
		"not hex":           "svc/leader",
		"full-width digits": "svc/１",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := keys.Parse("svc", key)
			require.ErrorIs(t, err, eldest.ErrForeignKey)
			require.ErrorContains(t, err, strconv.Quote(key))
		})
	}
}

func TestEnd(t *testing.T) {
	for _, tc := range []struct{ prefix, end string }{
		{"", "\x00"},
		{"\xff", "\x00"},
		{"\xff\xff\xff", "\x00"},
		{"a", "b"},
		{"a\xff", "b"},
		{"a\xff\xff", "b"},
		{"a\xffb", "a\xffc"},
		{"\x00", "\x01"},
		{"\xfe\xff", "\xff"},
		{"svc/", "svc0"},
		{"svc\xff/", "svc\xff0"},
	} {
		assert.Equal(t, tc.end, keys.End(tc.prefix), "%q", tc.prefix)
	}
}

// TestRegression17NamesDoNotCollide compares pairs of names that collide in other libraries: no key
// of the one is in the range of the other.
func TestRegression17NamesDoNotCollide(t *testing.T) {
	names := []string{
		"a", "ab", "abc", "b", "svc", "svc0", "svc.", "svc-a", "SVC", "leader", "leaderX",
		"\x00", "\x00\x00", "a\x00", "\xff", "\xff\xff", "a\xff", "a\xff\xff", "a\xfe", "\xfe\xff",
		".", "0", "1", "2a", "7fffffffffffffff", " ", "a ",
	}
	leases := []int64{1, 9, 10, 0x2a, 0xff, 1 << 40, math.MaxInt64}
	for _, mine := range names {
		require.NoError(t, keys.Check(mine))
		for _, other := range names {
			if mine == other {
				continue
			}
			for _, lease := range leases {
				requireApart(t, mine, other, lease)
			}
		}
	}
}

// requireApart requires that a candidate of one election is outside another election.
func requireApart(t *testing.T, mine, other string, lease int64) {
	t.Helper()
	key := keys.Candidate(mine, lease)
	begin, end := keys.Range(other)
	require.False(t, key >= begin && (key < end || end == "\x00"), "%q, of election %q, is in the range of %q", key, mine, other)
	require.ErrorIs(t, etcdtest.Err(keys.Parse(other, key)), eldest.ErrForeignKey)
}
