package benchsite

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestSite(t *testing.T) {
	ctx, dir := testContext(t), t.TempDir()
	access := &connect.Flags{DialTimeout: time.Minute, CommandTimeout: time.Minute}
	site, err := Open(ctx, Config{Access: access, Members: 1, Data: dir, Worker: []string{"cat"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, site.Close()) })
	require.Equal(t, 1, site.Members)
	require.Regexp(t, `^3\.\d+\.\d+`, site.Version)
	require.Contains(t, site.Storage, dir)
	require.Contains(t, site.Storage, "fsync on")

	client, err := clientv3.New(site.Client)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	// The cluster has etcd's default limits: a lease of 2 s has a TTL of 2 s.
	lease, err := client.Grant(ctx, 2)
	require.NoError(t, err)
	require.EqualValues(t, 2, lease.TTL)

	before, err := site.Metrics(ctx)
	require.NoError(t, err)
	for range 7 {
		_, err := client.Put(ctx, "x", "y")
		require.NoError(t, err)
	}
	after, err := site.Metrics(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 7, after["etcd_mvcc_put_total"]-before["etcd_mvcc_put_total"])
	require.Positive(t, after["grpc_server_started_total"], "labels are added up")
	require.Positive(t, after["etcd_disk_wal_fsync_duration_seconds_count"], "the members wait for the disk")

	// For an existing cluster Open finds the same, except where its data is.
	remote, err := Open(ctx, Config{Remote: true, Access: access, Worker: []string{"cat"}})
	require.NoError(t, err)
	require.Equal(t, []any{site.Members, site.Version, ""}, []any{remote.Members, remote.Version, remote.Storage})
	// A worker's input begins with how to reach the cluster.
	cmd, said := remote.Worker(), &bytes.Buffer{}
	cmd.Stdin, cmd.Stdout = bytes.NewReader(remote.WorkerInput), said
	require.NoError(t, remote.Start(cmd))
	require.NoError(t, cmd.Wait())
	require.Regexp(t, `^{.*`+regexp.QuoteMeta(access.Endpoints[0])+`.*}\n$`, said.String())
	require.NoError(t, remote.Close())

	require.NoError(t, site.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = Open(over, Config{Access: access, Members: 1, Data: dir, Worker: []string{"cat"}})
	require.ErrorIs(t, err, context.Canceled)
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = Open(short, Config{Remote: true, Access: access, Worker: []string{"cat"}})
	require.Error(t, err)
}

func TestStorage(t *testing.T) {
	dir := t.TempDir()
	for data, want := range map[string]string{dir: dir, Disk: "/", "": "/"} {
		where, err := Settle(data, 1)
		require.NoError(t, err)
		require.DirExists(t, where.Dir)
		require.Contains(t, where.Dir, want)
	}
	_, err := Settle(Memory, 1<<52) // more than any machine has
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "--data disk")
	_, err = Settle("/no/such/directory", 1)
	require.ErrorIs(t, err, ErrInvalid)

	require.Equal(t, "memory (tmpfs at /x), fsync on", Storage{"/x", filesystem{name: "tmpfs", memory: true}}.String())
	require.Equal(t, "disk (/x), fsync on", Storage{Dir: "/x"}.String())
}

func TestSumsOfMetrics(t *testing.T) {
	total := map[string]float64{}
	for range 2 {
		require.NoError(t, sum(strings.NewReader(`# TYPE a counter
a{x="1"} 3
a{x="2"} 4
# TYPE b gauge
b 5
# TYPE c histogram
c_bucket{le="1"} 1
c_bucket{le="+Inf"} 2
c_sum 7.5
c_count 2
# TYPE d summary
d{quantile="0.5"} 1
d_sum 10
d_count 3
e 1
`), total))
	}
	require.Equal(t, map[string]float64{"a": 14, "b": 10, "c_sum": 15, "c_count": 4, "d_sum": 20, "d_count": 6, "e": 2}, total)
	require.Error(t, sum(strings.NewReader("no metrics at all"), total))
	for _, urls := range [][]string{nil, {"http://127.0.0.1:1"}, {"::"}} {
		m := newMetrics(urls, nil)
		_, err := m.read(testContext(t))
		require.Error(t, err)
		require.NoError(t, m.close())
	}
}
