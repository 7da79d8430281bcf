package resolver_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/resolver"
)

// member is a node of a real leader-elected service.
type member struct {
	*curator.Curator
	address string
	stop    func()
}

func newMember(t testing.TB, election, id string, etcd *clientv3.Client) *member {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &member{address: listener.Addr().String()}
	m.Curator, err = curator.New(curator.Config{
		Elector: elector.Config{
			Election: election, NodeID: id, Source: elector.Always(elector.Client(etcd)),
			Session: lease.Config{TTL: time.Minute},
			Backoff: func(int) time.Duration { return 10 * time.Millisecond },
		},
		Listener: listener,
		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err == nil {
				kvpb.RegisterKVServer(r, server)
			}
			return err
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = m.Run(ctx); close(done) }()
	m.stop = func() { cancel(); <-done }
	t.Cleanup(m.stop)
	return m
}

// Row 49, with the real service: leaders are deposed and stopped, and a client of each
// kind follows; what was acknowledged is there.
func TestRequirement49ClientsOfACurator(t *testing.T) {
	t.Parallel()
	etcd, election := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	var members []*member
	var addresses []string
	for i := range 3 {
		m := newMember(t, election, fmt.Sprintf("n%d", i), etcd)
		members, addresses = append(members, m), append(addresses, m.address)
	}
	leader := func() (leading *member) {
		require.Eventually(t, func() bool {
			for _, m := range members {
				if m.Status().Role() == elector.Leading {
					leading = m
				}
			}
			return leading != nil
		}, etcdtest.Patience, time.Millisecond)
		return leading
	}
	conns := map[string]*grpc.ClientConn{
		"etcd":  dial(t, election, fromEtcd(t, etcd)),
		"nodes": dial(t, election, fromNodes(t, resolver.NodesConfig{Addresses: addresses})),
	}
	written := 0
	put := func(from string) int64 {
		t.Helper()
		for {
			written++
			key := fmt.Sprintf("%s-%d", from, written)
			resp, err := kvpb.NewKVClient(conns[from]).Put(etcdtest.Context(t), &kvpb.PutRequest{RequestId: key, Key: key, Value: []byte(key)}, grpc.WaitForReady(true))
			if err == nil {
				item, err := kvpb.NewKVClient(conns[from]).Get(etcdtest.Context(t), &kvpb.GetRequest{Key: key}, grpc.WaitForReady(true))
				if err == nil {
					require.Equal(t, key, string(item.GetValue()))
					return resp.GetReceipt().GetToken()
				}
			}
			require.Contains(t, []codes.Code{codes.Unavailable, codes.OK}, status.Code(err), "%v", err)
		}
	}
	tokens := map[string]int64{}
	for round := range 6 {
		l := leader()
		key, token, leads := l.Status().Own()
		for from := range conns {
			got := put(from)
			require.GreaterOrEqual(t, got, tokens[from], "a client is never led back")
			tokens[from] = got
		}
		switch {
		case !leads:
		case round%3 == 2 && len(members) > 1:
			l.stop()
			for i, m := range members {
				if m == l {
					members = append(members[:i:i], members[i+1:]...)
				}
			}
		default:
			_, err := etcd.Delete(etcdtest.Context(t), key)
			require.NoError(t, err)
		}
		for from := range conns {
			for leads && put(from) <= int64(token) {
				continue
			}
		}
	}
}
