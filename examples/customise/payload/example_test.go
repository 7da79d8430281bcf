package payload_test

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/examples/customise/internal/stage"
	"github.com/eldest-io/eldest/examples/customise/payload"
	"github.com/eldest-io/eldest/identity"
)

// run runs a node until stop is called.
func run(ctx context.Context, client *clientv3.Client, name, address string, codec identity.Codec) (node *elector.Elector, stop func()) {
	node = stage.Must(elector.New(elector.Config{
		Election: "billing", NodeID: name, Address: address, Codec: codec,
		Source: elector.Always(elector.Client(client)),
	}))
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = node.Run(ctx, func(ctx context.Context, _ *elector.Leadership) error {
			<-ctx.Done()
			return nil
		})
	}()
	return node, func() { cancel(); <-done }
}

// until waits until a node has a role.
func until(ctx context.Context, node *elector.Elector, role elector.Role) elector.Status {
	return stage.Must(node.Watch().NextWhere(ctx, func(s elector.Status) bool { return s.Role() == role }))
}

// A fleet whose values are JSON, and a node that still writes protobuf and reads both.
func Example() {
	ctx, client, stop := stage.Start()
	defer stop()

	anna, stopAnna := run(ctx, client, "anna", "10.0.0.1:80", payload.JSON{Zone: "eu-1"})
	key, _, _ := until(ctx, anna, elector.Leading).Own()
	value := stage.Must(client.Get(ctx, key)).Kvs[0].Value
	id := stage.Must(payload.JSON{}.Decode(value))
	fmt.Printf("etcdctl shows JSON: %t\n", value[0] == '{' && id.NodeID == "anna")

	bert, stopBert := run(ctx, client, "bert", "10.0.0.2:80", payload.Moving{Write: identity.Protobuf{}, Read: payload.JSON{}})
	leader, _ := until(ctx, bert, elector.Following).Leader()
	fmt.Printf("bert follows %s at %s in zone %s, TTL %v\n", leader.NodeID, leader.Address, payload.Extra(leader.Value()), leader.TTL)
	stopAnna()
	until(ctx, bert, elector.Leading)
	stopBert()
	// Output:
	// etcdctl shows JSON: true
	// bert follows anna at 10.0.0.1:80 in zone eu-1, TTL 10s
}
