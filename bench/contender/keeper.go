package contender

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/lease"
)

// kept is this project with a keeper, in processes that have KeeperWith: the workers, of which some
// are killed. In others it has none.
type kept struct{ Ours }

// Name is Kept.
func (kept) Name() string { return Kept }

// Open opens a lease.Session with a keeper.
func (c kept) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	if KeeperWith != nil {
		k, err := theKeeper()
		if err != nil {
			return nil, err
		}
		c.Lease = func(cfg *lease.Config) { cfg.Keeper = k }
	}
	return c.Ours.Open(ctx, client, ttl)
}

// KeeperWith is what the keeper of this process is started with (keeper.Start); nil: it has none. It
// is set before the first session is opened, in a process whose main has called keeper.Serve.
var KeeperWith []byte

// theKeeper is that of this process, and ends with it.
var theKeeper = sync.OnceValues(func() (*keeper.Keeper, error) { return keeper.Start(context.Background(), KeeperWith) })
