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

// Dial returns a client of all members. The caller closes it. The functions in with change the
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

// dial makes a client with the settings that a production program needs, with one exception: it
// reconnects to a member that was unavailable within a tenth of a second, instead of gRPC's one
// second to two minutes, so that tests do not wait for gRPC's back-off.
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

// Reachable waits until a client reaches etcd again after an outage. During an outage the client
// repeats reads by itself, but not writes.
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
