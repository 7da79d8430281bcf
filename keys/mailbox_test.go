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
	require.Equal(t, "/eldest/beat/2a", keys.Beat(42))
	begin, end := keys.Beats()
	require.True(t, begin <= keys.Beat(1) && keys.Beat(1<<62) < end)
	require.False(t, begin <= keys.Mailbox("svc", 42) && keys.Mailbox("svc", 42) < end)
}

func TestMailbox(t *testing.T) {
	require.Equal(t, "/eldest/ask/svc/2a", keys.Mailbox("svc", 42))
	lease, err := keys.ParseMailbox("svc", "/eldest/ask/svc/2a")
	require.NoError(t, err)
	require.Equal(t, int64(42), lease)
	for _, key := range []string{
		"", "svc/2a", "/eldest/ask/", "/eldest/ask/svc/", "/eldest/ask/svc/2A", "/eldest/ask/svc/0", "/eldest/ask/svc/a/2a",
		"/eldest/ask/other/2a", "/eldest/asks/svc/2a", "eldest/ask/svc/2a",
	} {
		require.ErrorIs(t, etcdtest.Err(keys.ParseMailbox("svc", key)), eldest.ErrForeignKey, key)
	}
}

// No election's range contains a request key, of its own candidates or of others, and no election
// contains the request keys of another.
func FuzzMailbox(f *testing.F) {
	f.Add("svc", "svc", int64(42))
	f.Add("eldest", "ask", int64(1))
	f.Add("a", "a\xff", int64(1)<<62)
	f.Add("\xff", "ab", int64(7))
	f.Fuzz(func(t *testing.T, mine, other string, lease int64) {
		if keys.Check(mine) != nil || keys.Check(other) != nil || lease <= 0 {
			return
		}
		box := keys.Mailbox(mine, lease)
		begin, end := keys.Range(other)
		require.False(t, begin <= box && box < end, "%q in the range of %q", box, other)
		begin, end = keys.MailboxRange(other)
		require.Equal(t, mine == other, begin <= box && box < end)
		got, err := keys.ParseMailbox(other, box)
		require.Equal(t, mine == other, err == nil)
		if err == nil {
			require.Equal(t, lease, got)
		}
		require.ErrorIs(t, etcdtest.Err(keys.Parse(other, box)), eldest.ErrForeignKey)
		require.True(t, strings.HasSuffix(box, keys.Candidate(mine, lease)))
	})
}
