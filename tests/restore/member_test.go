package restore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

// memberEnv makes the test binary an etcd member; its value is the data directory.
const memberEnv = "ELDEST_RESTORE_MEMBER"

// patience bounds every wait: it is much longer than any wait takes.
const patience = time.Minute

func TestMain(m *testing.M) {
	if dir := os.Getenv(memberEnv); dir != "" {
		beMember(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// peer is the advertised peer URL of a member: no other member uses it.
var peer = url.URL{Scheme: "http", Host: "127.0.0.1:0"}

// beMember runs one etcd member until its parent ends.
func beMember(dir string) {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "m0", dir
	client := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = 10, 100 // for leases of one second
	cfg.UnsafeNoFsync, cfg.EnableGRPCGateway = true, false
	cfg.LogLevel, cfg.LogOutputs = "error", []string{"stderr"}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "member:", err)
		os.Exit(1)
	}
	<-e.Server.ReadyNotify()
	fmt.Printf("ready %s\n", e.Clients[0].Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// start starts a member on a data directory. The member and its client end with stop, or with the
// test.
func start(t *testing.T, dir string) (client *clientv3.Client, stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), memberEnv+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := false
	stop = func() {
		if !ended {
			ended = true
			if client != nil {
				_ = client.Close()
			}
			_ = cmd.Process.Kill()
			_ = stdin.Close()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "the member has ended")
	client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{strings.TrimSpace(strings.TrimPrefix(line, "ready "))}, Logger: zap.NewNop(),
	})
	require.NoError(t, err)
	return client, stop
}

// save writes a backup, as etcdctl snapshot save does.
func save(ctx context.Context, t *testing.T, client *clientv3.Client) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	_, err := snapshot.NewV3(zap.NewNop()).Save(ctx, clientv3.Config{Endpoints: client.Endpoints(), Logger: zap.NewNop()}, path)
	require.NoError(t, err)
	require.True(t, fileutil.Exist(path))
	return path
}

// restore makes a data directory from a backup, as etcdutl snapshot restore does.
func restore(t *testing.T, backup string, bump uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	require.NoError(t, snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: backup, OutputDataDir: dir, Name: "m0", PeerURLs: []string{peer.String()},
		InitialCluster: "m0=" + peer.String(), InitialClusterToken: "etcd-cluster", RevisionBump: bump, MarkCompacted: bump > 0,
	}))
	return dir
}
