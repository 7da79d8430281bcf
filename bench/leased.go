package bench

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
)

// leased is a client for keys outside of every election. They are on a lease that is kept alive: if the run is killed
// they remain for a minute.
type leased struct {
	*clientv3.Client
	run   *run
	lease contender.Session
}

func (r *run) newLeased() *leased {
	client := must(r.site.dial())
	lease, err := must(contender.Named(contender.Floor)).Open(r.ctx, client, time.Minute)
	if err != nil {
		_ = client.Close()
		check(fmt.Errorf("a lease: %w", err))
	}
	return &leased{client, r, lease}
}

// put writes a key.
func (l *leased) put(ctx context.Context, key, value string) error {
	_, err := l.Put(ctx, key, value, clientv3.WithLease(l.lease.Lease()))
	return err
}

// remove removes all keys, and closes the client.
func (l *leased) remove() {
	ctx, cancel := context.WithTimeout(l.run.cleanup, cleanupTimeout)
	defer cancel()
	_ = l.lease.Close(ctx) // on an error the keys expire
	_ = l.Close()
}
