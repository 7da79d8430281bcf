// Command client is a client of the key-value service of examples/curator that continues when
// leaders crash: the example of package resolver, and of the part that a client must do by itself,
// which is to decide which requests may be sent twice.
//
// It gets the leader's address from etcd (--endpoints) or from any of the nodes (--nodes), and
// counts under a key of its own until a signal ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/resolver"
)

// options are the flags.
type options struct {
	election, name           string
	endpoints, nodes, cacert string
	timeout, every           time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.election, "election", "shop", "the election of the service")
	flag.StringVar(&o.name, "name", "client", "the name of this client; no other running client may have it")
	flag.StringVar(&o.nodes, "nodes", "", "addresses of nodes to query for the leader, separated by commas")
	flag.StringVar(&o.endpoints, "endpoints", "127.0.0.1:2379", "etcd's client endpoints, separated by commas, used without --nodes")
	flag.StringVar(&o.cacert, "cacert", "", "PEM file of the CA that signs the nodes' certificates (default: plain text)")
	flag.DurationVar(&o.timeout, "timeout", 12*time.Second, "the deadline of a call: more than the nodes' TTL and two seconds, so that a call survives a fail-over")
	flag.DurationVar(&o.every, "every", 100*time.Millisecond, "the pause between two writes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run counts until ctx ends.
func run(ctx context.Context, o options) error {
	builder, done, err := o.builder()
	if err != nil {
		return err
	}
	defer done()
	creds := insecure.NewCredentials()
	if o.cacert != "" {
		// The name to be certified is that of the target: the election's.
		if creds, err = credentials.NewClientTLSFromFile(o.cacert, ""); err != nil {
			return err
		}
	}
	conn, err := grpc.NewClient(resolver.Target(o.election),
		grpc.WithResolvers(builder),
		grpc.WithTransportCredentials(creds),
		// A call waits for a leader, up to its deadline, instead of failing at once.
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		// gRPC's pauses between attempts to connect grow to two minutes.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
	)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()

	c := counter{service: kvpb.NewKVClient(conn), election: o.election, key: "counts/" + o.name, timeout: o.timeout}
	count, err := c.read(ctx)
	for err == nil {
		if count, err = c.advance(ctx, count); err == nil {
			fmt.Printf("counted %d\n", count.n)
			err = sleep(ctx, o.every)
		}
	}
	return err
}

// builder returns the builder of the resolver that finds the leader. done is called when no
// connection uses it any more.
func (o options) builder() (b grpcresolver.Builder, done func(), err error) {
	if o.nodes != "" {
		// They are asked with the connection's own credentials.
		b, err = resolver.FromNodes(resolver.NodesConfig{Addresses: strings.Split(o.nodes, ",")})
		return b, func() {}, err
	}
	etcd, err := elector.Dial(clientv3.Config{Endpoints: strings.Split(o.endpoints, ",")})
	if err != nil {
		return nil, nil, err
	}
	b, err = resolver.FromEtcd(resolver.EtcdConfig{KV: etcd, Watcher: etcd})
	if err != nil {
		return nil, nil, errors.Join(err, etcd.Close())
	}
	return b, func() { _ = etcd.Close() }, nil
}
