package stream

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Over makes a stream open links over a Watcher.
func Over(w clientv3.Watcher) func(l *Config) {
	return func(cfg *Config) { cfg.Open = (&lanes{watcher: w}).open }
}

// AtMembers opens links of etcd's API, as for a plain client.
func AtMembers(client *clientv3.Client) func(context.Context, error) (Link, error) {
	return (&member{client: client}).open
}
