package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
)

// What is done to etcd by hand.
func init() {
	strikers[plan.MoveLeader] = moveLeader
	strikers[plan.Compact] = compact
	strikers[plan.Defragment] = defragment
	strikers[plan.Revoke] = revoke
	strikers[plan.Delete] = remove
}

// attempt bounds one request of a hand: the member that was asked may not answer.
const attempt = time.Second

// persist asks until there is an answer, or ctx ends.
func persist(ctx context.Context, ask func(context.Context) error) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, attempt)
		err := ask(bounded)
		cancel()
		if err == nil || errors.Is(err, ErrNoEffect) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNoEffect, err)
		}
	}
}

// moveLeader is proven by a majority that follows the other member.
func moveLeader(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	from, err := f.Cluster.Leader(ctx)
	if err != nil {
		return nil, nil, err
	}
	if f.Cluster.Size() == 1 {
		return nil, nil, ErrUnsupported
	}
	to := (from + 1 + s.Pick%(f.Cluster.Size()-1)) % f.Cluster.Size()
	if err := f.note("etcd's leader moves from %d to %d", from, to); err != nil {
		return nil, nil, err
	}
	err = f.Cluster.MoveLeader(ctx, to) // it asks who leads until it is that one
	return &Injury{Text: fmt.Sprintf("from member %d to %d", from, to)}, nil, err
}

// compact is proven by the past, which cannot be read any more. All of it was recorded
// before.
func compact(ctx context.Context, f *Field, _ plan.Strike) (*Injury, func(context.Context) error, error) {
	var rev int64
	err := persist(ctx, func(ctx context.Context) (err error) {
		rev, err = f.Cluster.Revision(ctx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if err := f.Truth.Reached(ctx, rev); err != nil {
		return nil, nil, err
	}
	if err := f.note("compaction up to %d", rev); err != nil {
		return nil, nil, err
	}
	err = persist(ctx, func(ctx context.Context) error {
		_, err := f.Admin.Compact(ctx, rev, clientv3.WithCompactPhysical())
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil // an attempt whose answer was lost
		}
		return err
	})
	return &Injury{Text: fmt.Sprintf("up to revision %d", rev)}, func(ctx context.Context) error {
		return eventually(ctx, "that the past is gone", func() (bool, error) {
			bounded, cancel := context.WithTimeout(ctx, attempt)
			defer cancel()
			_, err := f.Admin.Get(bounded, f.Data, clientv3.WithRev(rev-1))
			return errors.Is(err, rpctypes.ErrCompacted), nil
		})
	}, err
}

// defragment is proven by the members' answers.
func defragment(ctx context.Context, f *Field, _ plan.Strike) (*Injury, func(context.Context) error, error) {
	if err := f.note("defragmentation"); err != nil {
		return nil, nil, err
	}
	return &Injury{Text: "all members"}, nil, f.Cluster.Defragment(ctx)
}

// target is a candidate's key that a hand takes away.
type target struct {
	key, who     string
	token, lease int64
}

// target finds the key of a participant that has the role, and files its removal, which
// comes next: nobody may learn of it before.
func (f *Field) target(ctx context.Context, s plan.Strike) (t target, err error) {
	m, err := f.pick(ctx, s)
	if err != nil {
		return t, err
	}
	err = persist(ctx, func(ctx context.Context) error {
		t = target{who: m.Who(), lease: m.Stands().Lease}
		t.key = keys.Candidate(f.Election, t.lease)
		resp, err := f.Admin.Get(ctx, t.key)
		if err != nil {
			return err
		}
		if len(resp.Kvs) == 0 {
			return fmt.Errorf("%s has no key now", t.who) // it registers in a moment
		}
		t.token = resp.Kvs[0].CreateRevision
		return nil
	})
	if err != nil {
		return t, err
	}
	return t, f.Log.Add(oracle.Event{Kind: oracle.Removed, Who: "admin", Token: t.token, Key: t.key, Lease: t.lease})
}

// revoke is proven by etcd, which does not know the lease any more.
func revoke(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	t, err := f.target(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	err = persist(ctx, func(ctx context.Context) error {
		_, err := f.Admin.Revoke(ctx, clientv3.LeaseID(t.lease))
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil // an attempt whose answer was lost
		}
		return err
	})
	return &Injury{Text: t.who}, f.gone(t), err
}

// remove is proven by etcd, which has the key no more.
func remove(ctx context.Context, f *Field, s plan.Strike) (*Injury, func(context.Context) error, error) {
	t, err := f.target(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	err = persist(ctx, func(ctx context.Context) error {
		_, err := f.Admin.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.token)).
			Then(clientv3.OpDelete(t.key)).Commit()
		return err
	})
	return &Injury{Text: t.who}, f.gone(t), err
}

// gone blocks until the key is not there, in the life in which it was taken away.
func (f *Field) gone(t target) func(context.Context) error {
	return func(ctx context.Context) error {
		return persist(ctx, func(ctx context.Context) error {
			resp, err := f.Admin.Get(ctx, t.key)
			if err == nil && len(resp.Kvs) > 0 && resp.Kvs[0].CreateRevision == t.token {
				return fmt.Errorf("%w: %s is still there", ErrNoEffect, t.key)
			}
			return err
		})
	}
}
