package etcdtest

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Deaf returns a watcher whose watches are confirmed and then receive no events, except the watches
// of the keys in hears.
func Deaf(w clientv3.Watcher, hears ...string) clientv3.Watcher { return deaf{w, hears} }

type deaf struct {
	clientv3.Watcher
	hears []string
}

func (d deaf) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	events := d.Watcher.Watch(ctx, key, opts...)
	if slices.Contains(d.hears, key) {
		return events
	}
	out := make(chan clientv3.WatchResponse, 1)
	go func() {
		defer close(out)
		if confirmed, ok := <-events; ok {
			out <- confirmed
		}
		for range events { // until ctx ends
		}
	}()
	return out
}
