package etcdtest

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Dial returns a client of all members. The caller closes it. with changes the
// client's config last; Recorder.Attach is such a function.
func (c *Cluster) Dial(with ...func(*clientv3.Config)) (*clientv3.Client, error) {
	return dial(c.Endpoints(), with)
}

// Client is Dial for tests: the client is closed with the test.
func (c *Cluster) Client(t testing.TB, with ...func(*clientv3.Config)) *clientv3.Client {
	t.Helper()
	return clientFor(t, c.Endpoints(), with)
}

// ClientTo is a client of member i only, closed with the test.
func (c *Cluster) ClientTo(t testing.TB, i int, with ...func(*clientv3.Config)) *clientv3.Client {
	t.Helper()
	return clientFor(t, []string{c.members[i].Endpoint}, with)
}

func clientFor(t testing.TB, endpoints []string, with []func(*clientv3.Config)) *clientv3.Client {
	t.Helper()
	cli, err := dial(endpoints, with)
	if err != nil {
		t.Fatalf("dialling etcd: %v", err)
	}
	t.Cleanup(func() {
		_ = cli.Close() // a test may have closed it already
	})
	return cli
}

// dial makes a client as a careful program would, but for one thing: it comes back to
// a member that was away within a tenth of a second, not within gRPC's second
// to two minutes, so that a test need not wait for what it does not test.
func dial(endpoints []string, with []func(*clientv3.Config)) (*clientv3.Client, error) {
	cfg := clientv3.Config{
		Endpoints: endpoints,
		// gRPC pings no more often than every ten seconds.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 100 * time.Millisecond},
			MinConnectTimeout: time.Second,
		})},
	}
	for _, change := range with {
		change(&cfg)
	}
	return clientv3.New(cfg)
}

// Reachable waits until a client has found an etcd again that was away: of what it is asked
// then, it repeats the reads by itself, and no write.
func Reachable(t testing.TB, cli *clientv3.Client) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		once, cancel := context.WithTimeout(limit, time.Second)
		_, err := cli.Get(once, "reachable?")
		cancel()
		if err == nil {
			return
		}
		if limit.Err() != nil {
			t.Fatalf("etcd is not reached: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}
