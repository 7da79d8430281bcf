package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// Field is a cluster that faults are injected into, and the processes of its participants. Its
// methods may be called concurrently.
type Field struct {
	*etcdtest.Cluster
	// Each has a client of each single member, All is a client of all members. They belong to the
	// cluster, and are closed with it.
	Each []*clientv3.Client
	All  *clientv3.Client
	// Spawner starts processes, which end with the field at the latest.
	Spawner *offspring.Spawner

	mu    sync.Mutex
	cut   []bool // by member
	asked int    // the member that was asked last
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

// Client returns the client of a member that is not partitioned, or All if every member is.
func (f *Field) Client() *clientv3.Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.cut, false); i >= 0 {
		return f.Each[i]
	}
	return f.All
}

// Cut holds back what members send to all others, what the others send to them, or both, until
// Mend. It blocks until something of each member was held back. The members must be mended even
// after an error.
func (f *Field) Cut(ctx context.Context, way etcdtest.Direction, members ...int) (err error) {
	before := make([]int64, len(members))
	for n, i := range members {
		if before[n], err = f.Held(i); err != nil {
			return err
		}
	}
	for _, i := range members {
		f.isCut(i, true)
		err = errors.Join(err, f.CutOneWay(i, way))
	}
	if err != nil {
		return err
	}
	held := make([]bool, len(members))
	return Until(ctx, fmt.Sprintf("data of members %v is held back", members), func(context.Context) (bool, error) {
		for n, i := range members {
			now, err := f.Held(i)
			if err != nil {
				return true, err
			}
			held[n] = held[n] || now > before[n]
		}
		return !slices.Contains(held, false), nil
	})
}

// Mend joins members to all others, except to those that are partitioned themselves. It may be
// called again.
func (f *Field) Mend(members ...int) (err error) {
	for _, i := range members {
		if once := f.Cluster.Mend(i); once != nil {
			err = errors.Join(err, once)
			continue
		}
		f.isCut(i, false)
	}
	return err
}

func (f *Field) isCut(member int, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[member] = cut
}

// ErrNoEffect is returned for what was not seen to take effect.
var ErrNoEffect = errors.New("it took no effect")

// ErrNoMember is returned for a request that cannot be sent.
var ErrNoMember = errors.New("no member of etcd runs")

// attempt bounds one request: the member that receives it may not answer.
const attempt = time.Second

// Until calls ask every few milliseconds until it returns yes, and then returns its error. If ctx ends
// before that, the error is ErrNoEffect and says what was awaited. Each call may take a second.
func Until(ctx context.Context, what string, ask func(context.Context) (yes bool, err error)) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, attempt)
		yes, err := ask(bounded)
		cancel()
		if yes {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: no evidence that %s: %w", ErrNoEffect, what, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// Ask calls ask with the client of one running member after another, until it succeeds or ctx ends. Each
// call begins with another member: one that is partitioned runs, and does not answer, and ctx may leave
// no time for another one.
func (f *Field) Ask(ctx context.Context, ask func(context.Context, *clientv3.Client) error) error {
	return Until(ctx, "etcd answers", func(ctx context.Context) (bool, error) {
		for range f.Size() {
			if i := f.next(); f.Member(i).Running() {
				err := ask(ctx, f.Each[i])
				return err == nil, err
			}
		}
		return false, ErrNoMember
	})
}

// next returns the member after the one that it has returned last.
func (f *Field) next() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = (f.asked + 1) % f.Size()
	return f.asked
}

// Answers blocks until a request that requires a majority of the members is answered through a
// client, or, if want is false, until it is not answered within the given time, which is less than
// a second.
func Answers(ctx context.Context, client *clientv3.Client, want bool, within time.Duration) error {
	what := "etcd answers"
	if !want {
		what = "etcd does not answer"
	}
	return Until(ctx, what, func(ctx context.Context) (bool, error) {
		end, _ := ctx.Deadline()
		short := time.Until(end) < within // a request that was cancelled early does not count as unanswered
		once, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := client.Get(once, "majority?", clientv3.WithCountOnly())
		return (err == nil) == want && (err == nil || !short && ctx.Err() == nil), nil
	})
}

// Delete deletes the key that was created at a revision, and blocks until it is deleted.
func (f *Field) Delete(ctx context.Context, key string, created int64) error {
	return f.Ask(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", created)).
			Then(clientv3.OpDelete(key)).Commit()
		return errors.Join(err, gone(ctx, client, key, created))
	})
}

// Revoke revokes the lease of the key that was created at a revision, and blocks until both are gone.
func (f *Field) Revoke(ctx context.Context, lease int64, key string, created int64) error {
	return f.Ask(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Revoke(ctx, clientv3.LeaseID(lease))
		if errors.Is(err, rpctypes.ErrLeaseNotFound) { // the answer to an earlier attempt was lost
			err = nil
		}
		return errors.Join(err, gone(ctx, client, key, created))
	})
}

// gone returns an error if the key that was created at a revision exists.
func gone(ctx context.Context, client *clientv3.Client, key string, created int64) error {
	resp, err := client.Get(ctx, key)
	if err == nil && len(resp.Kvs) > 0 && resp.Kvs[0].CreateRevision == created {
		return fmt.Errorf("%s still exists", key)
	}
	return err
}

// CompactTo compacts etcd's history up to a revision, and blocks until an older one cannot be read.
func (f *Field) CompactTo(ctx context.Context, revision int64) error {
	return f.Ask(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical())
		if err == nil || errors.Is(err, rpctypes.ErrCompacted) { // the answer to an earlier attempt was lost
			_, err = client.Get(ctx, "history", clientv3.WithRev(revision-1))
		}
		switch {
		case errors.Is(err, rpctypes.ErrCompacted):
			return nil
		case err == nil:
			return fmt.Errorf("revision %d can still be read", revision-1)
		}
		return err
	})
}

// Queue returns the keys in the range of an election, the oldest first, and etcd's revision.
func (f *Field) Queue(ctx context.Context, election string) (kvs []*mvccpb.KeyValue, revision int64, err error) {
	begin, end := keys.Range(election)
	err = f.Ask(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err == nil {
			kvs, revision = resp.Kvs, resp.Header.Revision
		}
		return err
	})
	return kvs, revision, err
}

// Leftovers returns the keys of elections, and all leases of the cluster. It blocks until there are
// none, but no longer than limit.
func (f *Field) Leftovers(ctx context.Context, limit time.Duration, elections ...string) (left, leases []string, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	listed := false
	err = Until(limited, "no key and no lease is left", func(ctx context.Context) (bool, error) {
		granted, err := f.Client().Leases(ctx)
		if err != nil {
			return false, err
		}
		left, leases = nil, nil
		for _, l := range granted.Leases {
			leases = append(leases, fmt.Sprintf("%x", int64(l.ID)))
		}
		for _, name := range elections {
			begin, end := keys.Range(name)
			resp, err := f.Client().Get(ctx, begin, clientv3.WithRange(end), clientv3.WithKeysOnly())
			if err != nil {
				return false, err
			}
			for _, kv := range resp.Kvs {
				left = append(left, string(kv.Key))
			}
		}
		listed = true
		return len(left)+len(leases) == 0, nil
	})
	if listed && ctx.Err() == nil {
		err = nil
	}
	return left, leases, err
}
