package retryrpc

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// upstreamEnv makes TestUpstream crash.
const upstreamEnv = "ELDEST_UPSTREAM_CRASH"

// TestUpstream documents the fault of gRPC for which Reconnect has its conditions: a child process
// resets the pauses of a client while its endpoints change, and crashes, within milliseconds. If this
// test fails because the child ends without an error, gRPC has been corrected, and the conditions can
// be removed.
func TestUpstream(t *testing.T) {
	if os.Getenv(upstreamEnv) != "" {
		crash()
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUpstream$")
	child.Env = append(os.Environ(), upstreamEnv+"=1")
	out, err := child.CombinedOutput()
	require.Error(t, err, "gRPC is corrected?")
	require.Regexp(t, "fatal error: concurrent map iteration and map write|DATA RACE", string(out))
	require.Contains(t, string(out), "ResetConnectBackoff")
}

func crash() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop()})
	if err != nil {
		panic(err)
	}
	conn := client.ActiveConnection()
	conn.Connect()
	go func() {
		for {
			conn.ResetConnectBackoff()
		}
	}()
	for begun := time.Now(); time.Since(begun) < etcdtest.Patience; {
		client.SetEndpoints("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")
		client.SetEndpoints("127.0.0.1:1")
	}
}

// TestReconnectBesideSync: a client of the user's, whose endpoints change whenever etcd has answered,
// as by Sync and AutoSyncInterval, connects at once after outages, and does not crash. With the race
// detector it also shows that each change is ordered after the reset before it.
func TestReconnectBesideSync(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	answered := func() bool {
		_, err := client.MemberList(etcdtest.ContextFor(t, 200*time.Millisecond))
		if err != nil {
			Reconnect(client)
			return false
		}
		client.SetEndpoints(append(c.Endpoints(), "127.0.0.1:1")...)
		client.SetEndpoints(c.Endpoints()...)
		return true
	}
	for range 2 {
		etcdtest.Eventually(t, answered, "etcd answers")
		require.NoError(t, c.Member(0).Kill())
		for failed := 0; failed < 10; {
			if !answered() {
				failed++
			}
		}
		require.NoError(t, c.Member(0).Restart(etcdtest.Context(t)))
	}
	etcdtest.Eventually(t, answered, "etcd answers")
}
