package contender

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/lease"
)

// variant is this project with sessions of another configuration.
type variant struct {
	Ours
	name string
	// kept means that sessions have a keeper, in processes that have KeeperWith: the workers, some
	// of which are killed.
	kept bool
	// heartbeat, if not 0, is the timeout of their heartbeats.
	heartbeat time.Duration
}

func (v variant) Name() string { return v.name }

// Notices returns about how long it takes to notice the death of a leader's process. That is
// shorter than the lease.
func (v variant) Notices() time.Duration { return max(v.heartbeat, 200*time.Millisecond) }

func (v variant) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	var k *keeper.Keeper
	if v.kept && KeeperWith != nil {
		var err error
		if k, err = theKeeper(); err != nil {
			return nil, err
		}
	}
	v.Lease = func(cfg *lease.Config) { cfg.Keeper, cfg.Heartbeat.Timeout = k, v.heartbeat }
	return v.Ours.Open(ctx, client, ttl)
}

// KeeperWith is the input with which the keeper of this process is started (keeper.Start); nil
// means no keeper. It is set before the first session is opened, in a process whose main has called
// keeper.Serve.
var KeeperWith []byte

// theKeeper is the keeper of this process, and ends with it.
var theKeeper = sync.OnceValues(func() (*keeper.Keeper, error) {
	k, err := keeper.Start(context.Background(), KeeperWith)
	if err == nil {
		keeperPid.Store(int64(k.Pid()))
	}
	return k, err
})

var keeperPid atomic.Int64

// KeeperPid is the process ID of this process's keeper, 0 if it has none.
func KeeperPid() int { return int(keeperPid.Load()) }
