package etcdtest

import (
	"context"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ForExample starts a cluster of one member for an example, and returns a client of it. stop ends
// both. A failure ends the process. (A program gets its client from elector.Dial.)
func ForExample() (client *clientv3.Client, stop func()) {
	cluster, err := New(context.Background(), Config{})
	if err != nil {
		log.Fatal(err)
	}
	if client, err = cluster.Dial(); err != nil {
		log.Fatal(err)
	}
	return client, func() {
		_ = client.Close()
		_ = cluster.Close()
	}
}
