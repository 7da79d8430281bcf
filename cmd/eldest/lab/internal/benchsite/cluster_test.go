package benchsite

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func TestClusterOfProcesses(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	dir, died := t.TempDir(), make(chan error, 1)
	c, storage, err := Start(ctx, Config{Members: 1, Data: dir, Died: func(err error) { died <- err }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })

	facts, err := Survey(ctx, client)
	require.NoError(t, err)
	require.Equal(t, 1, facts.Members)
	require.Equal(t, c.Endpoints(), facts.URLs)
	require.Regexp(t, `^3\.\d+\.\d+`, facts.Version)
	require.Contains(t, storage, dir)
	require.Contains(t, storage, "fsync on")

	// etcd's own limits: a lease of 2 s is one of 2 s.
	lease, err := client.Grant(ctx, 2)
	require.NoError(t, err)
	require.EqualValues(t, 2, lease.TTL)

	meters := NewMeters(facts.URLs, nil)
	defer meters.Close()
	before, err := meters.Read(ctx)
	require.NoError(t, err)
	for range 7 {
		_, err := client.Put(ctx, "x", "y")
		require.NoError(t, err)
	}
	after, err := meters.Read(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 7, after["etcd_mvcc_put_total"]-before["etcd_mvcc_put_total"])
	require.Positive(t, after["grpc_server_started_total"], "labels are added up")
	require.Positive(t, after["etcd_disk_wal_fsync_duration_seconds_count"], "the members wait for the disk")

	require.NoError(t, c.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, died, "it was us who ended the members")
}

func TestStartCleansUpAfterItself(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	_, _, err := Start(ctx, Config{Members: 1, Data: dir})
	require.ErrorIs(t, err, context.Canceled)
	for _, data := range []string{filepath.Join(dir, "none"), os.Args[0]} {
		_, _, err = Start(context.Background(), Config{Members: 1, Data: data})
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "--data")
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSettle(t *testing.T) {
	dir := t.TempDir()
	for data, want := range map[string]string{dir: dir, Disk: "/", "": "/"} {
		where, err := settle(data, 1)
		require.NoError(t, err)
		require.DirExists(t, where.dir)
		require.Contains(t, where.dir, want)
	}
	// More than there is anywhere.
	_, err := settle(Memory, 1<<24)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "--data disk")

	require.Equal(t, "memory (tmpfs at /x), fsync on", place{dir: "/x", system: filesystem{name: "tmpfs", memory: true}}.String())
	require.Equal(t, "disk (/x), fsync on", place{dir: "/x"}.String())
}
