package etcdpeer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// connection is what the clients of all three systems have: an etcd client, and the election's log.
type connection struct {
	cfg  peer.ClientConfig
	etcd *clientv3.Client
	life *peer.Life
	// entries counts the entries that this client has sent, for the names of their keys.
	entries atomic.Int64
}

// open makes an etcd client with the settings that the system recommends, and blocks until a member has
// answered it, or ctx ends. dial is clientv3.New, or the system's own function.
func open(ctx context.Context, cfg peer.ClientConfig, settings clientv3.Config,
	dial func(clientv3.Config) (*clientv3.Client, error),
) (*connection, error) {
	settings.Endpoints, settings.Logger = cfg.Endpoints, zap.NewNop()
	settings.DialOptions = []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return cfg.Net.Dial(ctx, "tcp", address)
		}),
	}
	client, err := dial(settings)
	if err != nil {
		return nil, err
	}
	c := &connection{cfg: cfg, etcd: client, life: peer.NewLife()}
	if _, err := client.Get(ctx, c.log()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *connection) Close() error {
	c.life.End()
	return c.etcd.Close()
}

// log is the prefix of the keys of the election's log. It is in no range of an election's own keys.
func (c *connection) log() string { return "peers-log/" + c.cfg.Election + "/" }

// entry is the operation that adds an entry to the log.
func (c *connection) entry(text string) clientv3.Op {
	return clientv3.OpPut(fmt.Sprintf("%s%s-%d", c.log(), c.cfg.ID, c.entries.Add(1)), text)
}

func (c *connection) Log(ctx context.Context) ([]string, error) {
	resp, err := c.etcd.Get(ctx, c.log(), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, err
	}
	var entries []string
	for _, kv := range resp.Kvs {
		entries = append(entries, string(kv.Value))
	}
	return entries, nil
}
