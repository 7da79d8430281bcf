// Command curator is a node of a gRPC service of which one instance leads: the example of package
// curator, here with a key-value service that is stored in etcd. Start three of them, each with a
// --node and a --listen of its own. Clients may call any of them: the leader answers. Register a
// service of your own in place of the key-value service.
//
// With --cert, --key and --cacert the listener and the connections between the nodes use TLS. The
// certificate of a node must be valid for its node ID, which the other nodes verify, and for the
// name of the election, which clients of package resolver verify.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
)

// options are the flags.
type options struct {
	election, node, endpoints string
	listen, advertise, http   string
	ttl                       time.Duration
	files                     files
}

func main() {
	var o options
	flag.StringVar(&o.election, "election", "shop", "the election: the same for all nodes")
	flag.StringVar(&o.node, "node", "", "the name of this node; no other running process may have it")
	flag.StringVar(&o.endpoints, "endpoints", "127.0.0.1:2379", "etcd's client endpoints, separated by commas")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "the address to listen on for requests, also from the other nodes; port 0 means a free port")
	flag.StringVar(&o.advertise, "advertise", "", "the address that the others dial (default: that of --listen)")
	flag.StringVar(&o.http, "http", "", "the address of an HTTP endpoint for load balancers that reports whether this node leads (default: none)")
	flag.DurationVar(&o.ttl, "ttl", 10*time.Second, "how long the others wait for a node that crashed")
	flag.StringVar(&o.files.cert, "cert", "", "PEM file of this node's certificate")
	flag.StringVar(&o.files.key, "key", "", "PEM file of its key")
	flag.StringVar(&o.files.cacert, "cacert", "", "PEM file of the CA that signs the nodes' certificates")
	flag.Parse()
	if o.node == "" {
		log.Fatal("--node is required")
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := run(signals, o); err != nil {
		log.Fatal(err)
	}
}

// run serves until a signal ends it.
func run(signals chan os.Signal, o options) error {
	server, peer, err := o.files.credentials()
	if err != nil {
		return err
	}
	client, err := elector.Dial(clientv3.Config{Endpoints: strings.Split(o.endpoints, ",")})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	var verify func(context.Context, string) error // in plain text there is nothing to verify
	if server != nil {
		verify = curator.NodeCertificate
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	node, err := curator.New(curator.Config{
		Elector: elector.Config{
			Election: o.election, NodeID: o.node, Address: o.advertise,
			Source:  elector.Always(elector.Client(client)),
			Session: lease.Options{TTL: o.ttl},
		},
		Listeners: []curator.Listener{{Listener: listener, Credentials: server}},
		// New for each tenure, with the tenure's guard: nothing outlives the tenure.
		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err != nil {
				return err
			}
			kvpb.RegisterKVServer(r, server)
			return nil
		},
		PeerCredentials: peer,
		VerifyHop:       verify,
		Logger:          logger,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Printf("listening at %s\n", listener.Addr())
	if o.http != "" {
		stop, err := tellBalancers(o.http, node.RoleHandler(elector.Leading))
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		defer stop()
	}
	told := make(chan struct{})
	telling, hush := context.WithCancel(context.Background())
	go func() {
		defer close(told)
		tell(telling, node.Watch())
	}()
	// The first signal ends the context: calls that have begun are finished, leadership is given up,
	// and the next node leads milliseconds later. After a second signal calls are not waited for. A
	// third one ends the process.
	ctx, drain := context.WithCancel(context.Background())
	defer drain()
	go func() {
		<-signals
		drain()
		<-signals
		signal.Stop(signals)
		node.Stop()
	}()
	err = node.Run(ctx)
	hush()
	<-told
	if ctx.Err() != nil && !errors.Is(err, eldest.ErrStuck) {
		return nil // by a signal, as it should
	}
	return err
}

// tellBalancers serves HTTP requests at an address until stop is called.
func tellBalancers(address string, role http.Handler) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: role, ReadHeaderTimeout: 5 * time.Second}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(listener)
	}()
	fmt.Printf("reporting the role at http://%s\n", listener.Addr())
	return func() { _ = server.Close(); <-over }, nil
}

// tell prints the node's role, and each change, until ctx ends.
func tell(ctx context.Context, watch *elector.Watch) {
	for {
		status, err := watch.Next(ctx)
		if err != nil {
			return
		}
		switch leader, follows := status.Leader(); {
		case status.Role() == elector.Leading:
			_, token, _ := status.Own()
			fmt.Printf("leading with token %d\n", token)
		case follows:
			fmt.Printf("following %s at %s\n", leader.NodeID, leader.Address)
		default:
			fmt.Printf("unknown: %v\n", status.Reason())
		}
	}
}
