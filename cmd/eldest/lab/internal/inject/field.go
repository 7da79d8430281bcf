package inject

import (
	"context"
	"errors"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Field is a cluster that faults are injected into, and the processes of its participants.
// Its methods may be called from many goroutines.
type Field struct {
	*etcdtest.Cluster
	// Each has a client of each member alone, All is one of all of them. They are
	// the cluster's own, and closed with it.
	Each []*clientv3.Client
	All  *clientv3.Client
	// Spawner starts processes, which end with the field at the latest.
	Spawner *offspring.Spawner

	mu  sync.Mutex
	cut []bool // by member
}

// Open starts a cluster and blocks until it serves, or ctx ends. On an error nothing is
// left. The caller must Close the field.
func Open(ctx context.Context, cfg etcdtest.Config) (*Field, error) {
	cluster, err := etcdtest.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	f := &Field{Cluster: cluster, cut: make([]bool, cluster.Size())}
	f.All, err = cluster.Admin(nil)
	for i := range cluster.Size() {
		client, each := cluster.Admin(cluster.Member(i))
		f.Each = append(f.Each, client)
		err = errors.Join(err, each)
	}
	if err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	f.Spawner = offspring.NewSpawner()
	return f, nil
}

// Close ends all processes, and removes the cluster's data.
func (f *Field) Close() error {
	f.Spawner.Close()
	return f.Cluster.Close()
}

// Client returns the client of a member that is not cut; where each is, that of all.
func (f *Field) Client() *clientv3.Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.cut, false); i >= 0 {
		return f.Each[i]
	}
	return f.All
}
