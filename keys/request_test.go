package keys_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// The key of heartbeats is in no election's range: the election's name would have to be empty.
func TestBeat(t *testing.T) {
	require.Equal(t, "/eldest/heartbeat/2a", keys.Heartbeat(42))
	begin, end := keys.Heartbeats()
	require.True(t, begin <= keys.Heartbeat(1) && keys.Heartbeat(1<<62) < end)
	require.False(t, begin <= keys.Request("svc", 42) && keys.Request("svc", 42) < end)
}

func TestRequest(t *testing.T) {
	require.Equal(t, "/eldest/request/svc/2a", keys.Request("svc", 42))
	lease, err := keys.ParseRequest("svc", "/eldest/request/svc/2a")
	require.NoError(t, err)
	require.Equal(t, int64(42), lease)
	for _, key := range []string{
		"", "svc/2a", "/eldest/request/", "/eldest/request/svc/", "/eldest/request/svc/2A", "/eldest/request/svc/0", "/eldest/request/svc/a/2a",
		"/eldest/request/other/2a", "/eldest/requests/svc/2a", "eldest/request/svc/2a",
	} {
		require.ErrorIs(t, etcdtest.Err(keys.ParseRequest("svc", key)), eldest.ErrForeignKey, key)
	}
}

// No election's range contains a request key, of its own candidates or of others, and no election
// contains the request keys of another.
func FuzzRequest(f *testing.F) {
	f.Add("svc", "svc", int64(42))
	f.Add("eldest", "ask", int64(1))
	f.Add("a", "a\xff", int64(1)<<62)
	f.Add("\xff", "ab", int64(7))
	f.Fuzz(func(t *testing.T, mine, other string, lease int64) {
		if keys.Check(mine) != nil || keys.Check(other) != nil || lease <= 0 {
			return
		}
		box := keys.Request(mine, lease)
		begin, end := keys.Range(other)
		require.False(t, begin <= box && box < end, "%q in the range of %q", box, other)
		begin, end = keys.RequestRange(other)
		require.Equal(t, mine == other, begin <= box && box < end)
		got, err := keys.ParseRequest(other, box)
		require.Equal(t, mine == other, err == nil)
		if err == nil {
			require.Equal(t, lease, got)
		}
		require.ErrorIs(t, etcdtest.Err(keys.Parse(other, box)), eldest.ErrForeignKey)
		require.True(t, strings.HasSuffix(box, keys.Candidate(mine, lease)))
	})
}
