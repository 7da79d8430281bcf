package keys_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// FuzzEnd compares End with the definition, and with etcd's own client.
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
		in := key >= prefix && (end == "\x00" || key < end)
		require.Equal(t, strings.HasPrefix(key, prefix), in, "%q in [%q, %q)", key, prefix, end)
	})
}

// FuzzRange: of all possible keys, the range of an election contains those of its own candidates
// and of no other election's; every other key in it is foreign. Parse reverses Candidate.
func FuzzRange(f *testing.F) {
	for _, seed := range []struct {
		election, key string
		lease         int64
	}{
		{"svc", "svc/2a", 42},
		{"svc", "svc/2A", 1},             // not formatted like that
		{"svc", "svc/a/2a", 1},           // nested: of no election
		{"svc", "svc0/2a", 0x30},         // differs from the election in one byte
		{"svc", "svc", 7},                // the name alone
		{"svc", "svc/", 7},               // the prefix alone
		{"svc", "svc0", 7},               // the end of the range
		{"svc", "svc/\xff\xff", 1 << 40}, // the far end of it
		{"\xff", "\xff/7fffffffffffffff", 1 << 62},
		{"\xff", "\xff/8000000000000000", 1}, // larger than any lease
		{"\xff\xff", "\xff/1", 1},
		{"a", "a\xff/1", 1},
		{"", "/1", 0},
		{"a/b", "a/b/1", 1},
		{"\x1b[31m", "\x1b[31m/1", 1}, // a name with a control sequence
		{"\u202e", "\u202e/1", 1},     // and one that reverses the text after it
		{strings.Repeat("n", keys.MaxName+1), "n/1", 1},
	} {
		f.Add(seed.election, seed.key, seed.lease)
	}
	f.Fuzz(func(t *testing.T, election, key string, lease int64) {
		if err := keys.Check(election); err != nil {
			require.ErrorIs(t, err, eldest.ErrInvalid)
			requirePlain(t, err)
			require.True(t, election == "" || len(election) > keys.MaxName || strings.Contains(election, "/"))
			return
		}
		begin, end := keys.Range(election)
		in := begin <= key && key < end
		require.Equal(t, strings.HasPrefix(key, election+"/"), in, "%q in [%q, %q)", key, begin, end)
		owner, holder, candidate := ownerOf(key)
		if candidate {
			require.Equal(t, owner == election, in, "%q, a candidate of %q, in the range of %q", key, owner, election)
		}
		parsed, err := keys.Parse(election, key)
		if candidate && owner == election {
			require.NoError(t, err)
			require.Equal(t, holder, parsed)
			require.Equal(t, key, keys.Candidate(election, parsed))
		} else {
			require.ErrorIs(t, err, eldest.ErrForeignKey)
			require.Zero(t, parsed)
			requirePlain(t, err)
		}
		if lease > 0 {
			back, err := keys.Parse(election, keys.Candidate(election, lease))
			require.NoError(t, err)
			require.Equal(t, lease, back)
		}
	})
}

// ownerOf parses a key by its definition, without the tested code: a name, the first slash, and a
// positive number as %x formats it.
func ownerOf(key string) (election string, lease int64, ok bool) {
	election, id, ok := strings.Cut(key, "/")
	if !ok || election == "" || len(election) > keys.MaxName || len(id) == 0 || len(id) > 16 || id[0] == '0' {
		return "", 0, false
	}
	for i := range len(id) {
		digit := strings.IndexByte("0123456789abcdef", id[i])
		if digit < 0 || lease > math.MaxInt64>>4 {
			return "", 0, false
		}
		lease = lease<<4 | int64(digit)
	}
	return election, lease, true
}

// requirePlain requires that an error is safe to print: it may quote a refused name with any
// control characters.
func requirePlain(t *testing.T, err error) {
	t.Helper()
	for _, r := range err.Error() {
		require.True(t, strconv.IsPrint(r), "%q in %q", r, err)
	}
}
