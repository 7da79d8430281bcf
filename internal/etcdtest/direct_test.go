package etcdtest_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Measurements run on members as they are: no fabric between them, and their data where the caller
// wants it.
func TestDirectMembers(t *testing.T) {
	dir := t.TempDir()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Dir: dir, Direct: true, Fsync: true, Died: func(err error) { t.Error(err) }})
	require.Equal(t, dir, filepath.Dir(c.Dir()))
	_, err := c.Client(t).Put(etcdtest.Context(t), "k", "v")
	require.NoError(t, err)
	require.ErrorIs(t, c.Cut(0), etcdtest.ErrState)
	require.NoError(t, c.Member(0).Kill(), "which is our doing")
	require.NoError(t, c.Member(0).Restart(etcdtest.Context(t)))
	require.NoError(t, c.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestMembersThatDieAreReported(t *testing.T) {
	died := make(chan error, 1)
	c := etcdtest.Start(t, etcdtest.Config{Died: func(err error) { died <- err }})
	require.NoError(t, syscall.Kill(c.Member(0).Pid(), syscall.SIGKILL))
	select {
	case err := <-died:
		require.EqualError(t, err, "etcd member m1 ended by itself (signal: killed)")
	case <-time.After(etcdtest.Patience):
		t.Fatal("nobody noticed")
	}
	require.NoError(t, c.Close())

	_, err := etcdtest.New(etcdtest.Context(t), etcdtest.Config{Command: []string{"/nonexistent"}, Dir: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
	said := make(chan error, 1)
	_, err = etcdtest.New(etcdtest.Context(t), etcdtest.Config{Command: []string{"sh", "-c", "echo sorry >&2; exit 3"}, Died: func(err error) { said <- err }})
	require.ErrorContains(t, err, "sorry")
	require.EqualError(t, <-said, "etcd member m1 ended by itself (exit status 3): sorry")
}
