package benchsite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// begin starts a cluster in a directory of the test.
func begin(t *testing.T, members int) (*Cluster, *clientv3.Client, chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	died := make(chan error, members)
	c, err := Start(ctx, Config{Command: command, Members: members, Data: t.TempDir(), Died: func(err error) { died <- err }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return c, client, died
}

func TestClusterOfProcesses(t *testing.T) {
	c, client, died := begin(t, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	facts, err := Survey(ctx, client)
	require.NoError(t, err)
	require.Equal(t, 1, facts.Members)
	require.Equal(t, c.Endpoints(), facts.URLs)
	require.Regexp(t, `^3\.\d+\.\d+`, facts.Version)
	require.Contains(t, c.Storage(), filepath.Dir(c.place.dir))
	require.Contains(t, c.Storage(), "fsync on")

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

	dir := c.place.dir
	require.DirExists(t, dir)
	require.NoError(t, c.Close())
	require.NoDirExists(t, dir)
	require.Empty(t, died, "it was us who ended the members")
	require.NoError(t, c.Close(), "twice does nothing")
}

func TestMembersThatDieAreReported(t *testing.T) {
	c, _, died := begin(t, 1)
	c.members[0].End()
	select {
	case err := <-died:
		require.ErrorContains(t, err, "m1 was killed")
	case <-time.After(patience):
		t.Fatal("nobody noticed")
	}
}

func TestStartCleansUpAfterItself(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	_, err := Start(ctx, Config{Command: command, Members: 1, Data: dir})
	require.ErrorIs(t, err, context.Canceled)
	_, err = Start(context.Background(), Config{Command: command, Members: 2, Data: dir})
	require.ErrorIs(t, err, ErrInvalid)
	broken := func(Role, ...string) *exec.Cmd { return exec.Command("/nonexistent") }
	_, err = Start(context.Background(), Config{Command: broken, Members: 1, Data: dir})
	require.Error(t, err)
	for _, data := range []string{filepath.Join(dir, "none"), os.Args[0]} {
		_, err = Start(context.Background(), Config{Command: command, Members: 1, Data: data})
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "--data")
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestJanitor(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, dirPrefix+"1")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "m1"), 0o700))
	j, err := hire(command, dir)
	require.NoError(t, err)
	require.DirExists(t, dir, "it waits")
	j.dismiss()
	require.NoDirExists(t, dir)

	require.ErrorIs(t, RunJanitor(parent, strings.NewReader("")), ErrInvalid)
	require.DirExists(t, parent, "that is no cluster's")
}

func TestSettle(t *testing.T) {
	dir := t.TempDir()
	where, err := settle(dir, 1)
	require.NoError(t, err)
	require.Equal(t, dir, filepath.Dir(where.dir))
	require.NoError(t, where.remove())

	for _, data := range []string{Disk, ""} {
		where, err = settle(data, 1)
		require.NoError(t, err)
		require.DirExists(t, where.dir)
		require.NoError(t, where.remove())
	}
	// More than there is anywhere.
	_, err = settle(Memory, 1<<24)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "--data disk")

	require.Equal(t, "memory (tmpfs at /x), fsync on", place{parent: "/x", system: filesystem{name: "tmpfs", memory: true}}.String())
	require.Equal(t, "disk (/x), fsync on", place{parent: "/x"}.String())
}
