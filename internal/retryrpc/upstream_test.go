package retryrpc

import (
	"context"
	"os"
	"os/exec"
	"sync"
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
	require.Regexp(t, "fatal error: concurrent map iteration and map write|invalid memory address|DATA RACE", string(out))
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
// as by Sync and AutoSyncInterval, is used after outages and does not crash, also if requests fail
// while it is connected.
//
// Fails with a data race, or a crash, if clients with a connection are reset at each failure.
func TestReconnectBesideSync(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	request := func(limit time.Duration) error {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := client.MemberList(bounded)
		return err
	}
	results := make(chan bool) // of the requests that change the endpoints
	others.Go(func() {
		for ctx.Err() == nil {
			answered := request(200*time.Millisecond) == nil
			if answered {
				for range 100 {
					client.SetEndpoints(append(c.Endpoints(), "127.0.0.1:1")...)
					client.SetEndpoints(c.Endpoints()...)
				}
			}
			select {
			case results <- answered:
			case <-ctx.Done():
			}
		}
	})
	others.Go(func() { // as sessions do
		for ctx.Err() == nil {
			if request(time.Millisecond) != nil {
				Reconnect(client)
			}
		}
	})
	await := func(n int, want bool, what string) {
		t.Helper()
		for seen := 0; seen < n; {
			if etcdtest.Take(t, results, what) == want {
				seen++
			}
		}
	}
	await(20, true, "etcd answers")
	require.NoError(t, c.Member(0).Kill())
	await(5, false, "etcd does not answer")
	require.NoError(t, c.Member(0).Restart(etcdtest.Context(t)))
	await(20, true, "etcd answers")
}
