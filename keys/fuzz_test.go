package keys_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
)

// FuzzEnd holds End against the definition, against a search that knows no
// shortcut, and against etcd's own client.
func FuzzEnd(f *testing.F) {
	for _, seed := range []struct{ prefix, key string }{
		{"", ""}, {"\xff", "\xff\xff"}, {"a", "b"}, {"a\xff", "a\xff\xff\xff"}, {"svc/", "svc/1"}, {"svc/", "svc0"},
		{"a\xff\xff", "b"}, {"\xfe\xff", "\xff"}, {"\x00", "\x00\x00"}, {"ab", "a"},
	} {
		f.Add(seed.prefix, seed.key)
	}
	f.Fuzz(func(t *testing.T, prefix, key string) {
		end := keys.End(prefix)
		require.Equal(t, clientv3.GetPrefixRangeEnd(prefix), end)
		require.Equal(t, slowEnd(prefix), end)
		in := key >= prefix && (end == "\x00" || key < end)
		require.Equal(t, strings.HasPrefix(key, prefix), in, "%q in [%q, %q)", key, prefix, end)
	})
}

// slowEnd finds the end among all candidates for it: each way of cutting the
// prefix off and raising the last byte by one. The smallest that is greater than
// the prefix followed by as many 0xFF as one likes is the end.
func slowEnd(prefix string) string {
	beyond := prefix + strings.Repeat("\xff", len(prefix)+2)
	best := "\x00"
	for n := 1; n <= len(prefix); n++ {
		if prefix[n-1] == 0xff {
			continue
		}
		raised := []byte(prefix[:n])
		raised[n-1]++
		if s := string(raised); s > beyond && (best == "\x00" || s < best) {
			best = s
		}
	}
	return best
}

// FuzzParse: whatever Parse accepts is a key that Candidate makes, and whatever
// Candidate makes is accepted.
func FuzzParse(f *testing.F) {
	f.Add("svc", "svc/2a", int64(42))
	f.Add("svc", "svc/2A", int64(1))
	f.Add("svc", "svc/-1", int64(-1))
	f.Add("\xff", "\xff/7fffffffffffffff", int64(1)<<62)
	f.Add("", "/1", int64(0))
	f.Fuzz(func(t *testing.T, election, key string, lease int64) {
		if parsed, err := keys.Parse(election, key); err == nil {
			require.Positive(t, parsed)
			require.Equal(t, key, keys.Candidate(election, parsed))
		}
		if lease <= 0 || keys.Check(election) != nil {
			return
		}
		back, err := keys.Parse(election, keys.Candidate(election, lease))
		require.NoError(t, err)
		require.Equal(t, lease, back)
	})
}

// FuzzRegression17NamesDoNotCollide: no election sees a key of another.
func FuzzRegression17NamesDoNotCollide(f *testing.F) {
	f.Add("a", "ab", int64(1))
	f.Add("a", "a\xff", int64(1))
	f.Add("\xff", "\xff\xff", int64(1)<<62)
	f.Add("svc", "svc0", int64(0xa))
	f.Fuzz(func(t *testing.T, mine, other string, lease int64) {
		if mine == other || keys.Check(mine) != nil || keys.Check(other) != nil || lease <= 0 {
			return
		}
		requireApart(t, mine, other, lease)
		requireApart(t, other, mine, lease)
	})
}
