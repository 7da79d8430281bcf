package devcluster_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m, etcdtest.Embedded...) }

func start(t *testing.T, cfg devcluster.Config) *devcluster.Cluster {
	t.Helper()
	c, err := devcluster.Start(etcdtest.Context(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func client(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	cli, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = cli.Close() }) // closed twice in some tests
	return cli
}

func TestClusterServesAndLeavesNothing(t *testing.T) {
	c := start(t, devcluster.Config{Members: 3})
	cli := client(t, c.Endpoints()...)
	lease, err := cli.Grant(etcdtest.Context(t), 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, lease.TTL)
	infos := c.Members()
	require.Len(t, infos, 3)
	for _, m := range infos {
		require.DirExists(t, m.DataDir)
		require.NotEqual(t, "0", m.ID)
	}
	// An open watch must not hold up the end. Most often it does not at all; on a busy machine
	// etcd may come to wait for it, for 5.4 s.
	<-cli.Watch(etcdtest.Context(t), "k", clientv3.WithCreatedNotify())
	begin := time.Now()
	require.NoError(t, c.Close())
	require.Less(t, time.Since(begin), 20*time.Second)
	require.NoDirExists(t, filepath.Dir(infos[0].DataDir))
	require.NoError(t, c.Close())
}

func TestClusterComesBackWithItsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	first := start(t, devcluster.Config{Members: 3, Dir: dir})
	cli := client(t, first.Endpoints()...)
	_, err := cli.Put(etcdtest.Context(t), "k", "v")
	require.NoError(t, err)
	require.NoError(t, cli.Close())
	require.NoError(t, first.Close())

	_, err = devcluster.Start(etcdtest.Context(t), devcluster.Config{Members: 1, Dir: dir})
	require.ErrorIs(t, err, devcluster.ErrInvalid)

	second := start(t, devcluster.Config{Dir: dir})
	require.Equal(t, first.Members(), second.Members())
	got, err := client(t, second.Endpoints()...).Get(etcdtest.Context(t), "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(got.Kvs[0].Value))
}

func TestBadConfigs(t *testing.T) {
	for name, cfg := range map[string]devcluster.Config{
		"two members":    {Members: 2},
		"minus one":      {Members: -1},
		"hasty election": {Heartbeat: 100 * time.Millisecond, Election: 200 * time.Millisecond},
		"spare ports":    {Members: 1, ClientPorts: []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			_, err := devcluster.Start(etcdtest.Context(t), cfg)
			require.ErrorIs(t, err, devcluster.ErrInvalid)
			left, err := os.ReadDir(os.TempDir())
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestLogs(t *testing.T) {
	var log bytes.Buffer
	c := start(t, devcluster.Config{Log: &log})
	require.NoError(t, c.Close())
	require.Contains(t, log.String(), `"logger":"m1"`)
}
