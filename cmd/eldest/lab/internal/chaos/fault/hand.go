package fault

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
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

// moveLeader is proven by a majority that follows the other member.
func moveLeader(ctx context.Context, f *Field, s plan.Strike) (*Injury, error) {
	from, err := f.Leader(ctx)
	if err != nil {
		return nil, err
	}
	if f.Size() == 1 {
		return nil, ErrUnsupported
	}
	to := (from + 1 + s.Pick%(f.Size()-1)) % f.Size()
	if err := f.note("etcd's leader moves from %d to %d", from, to); err != nil {
		return nil, err
	}
	err = f.MoveLeader(ctx, to) // it asks who leads until it is that one
	return &Injury{Text: fmt.Sprintf("from member %d to %d", from, to)}, err
}

// compact is proven by the past, which cannot be read any more. All of it was recorded
// before.
func compact(ctx context.Context, f *Field, _ plan.Strike) (*Injury, error) {
	var rev int64
	err := inject.Persist(ctx, func(ctx context.Context) (err error) {
		rev, err = f.Revision(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := f.Truth.Reached(ctx, rev); err != nil {
		return nil, err
	}
	if err := f.note("compaction up to %d", rev); err != nil {
		return nil, err
	}
	err = inject.Persist(ctx, func(ctx context.Context) error {
		_, err := f.All.Compact(ctx, rev, clientv3.WithCompactPhysical())
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil // an attempt whose answer was lost
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Injury{Text: fmt.Sprintf("up to revision %d", rev)}, inject.Persist(ctx, func(ctx context.Context) error {
		_, err := f.All.Get(ctx, f.Data, clientv3.WithRev(rev-1))
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil
		}
		return fmt.Errorf("the past can be read: %v", err) //nolint:errorlint // mostly there is none
	})
}

// defragment is proven by the members' answers.
func defragment(ctx context.Context, f *Field, _ plan.Strike) (*Injury, error) {
	if err := f.note("defragmentation"); err != nil {
		return nil, err
	}
	return &Injury{Text: "all members"}, f.Defragment(ctx)
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
	err = inject.Persist(ctx, func(ctx context.Context) error {
		t = target{who: m.Who(), lease: m.Stands().Lease}
		t.key = keys.Candidate(f.Election, t.lease)
		resp, err := f.All.Get(ctx, t.key)
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
func revoke(ctx context.Context, f *Field, s plan.Strike) (*Injury, error) {
	t, err := f.target(ctx, s)
	if err != nil {
		return nil, err
	}
	err = inject.Persist(ctx, func(ctx context.Context) error {
		_, err := f.All.Revoke(ctx, clientv3.LeaseID(t.lease))
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil // an attempt whose answer was lost
		}
		return err
	})
	if err == nil {
		err = f.Gone(ctx, t.key, t.token)
	}
	return &Injury{Text: t.who}, err
}

// remove is proven by etcd, which has the key no more.
func remove(ctx context.Context, f *Field, s plan.Strike) (*Injury, error) {
	t, err := f.target(ctx, s)
	if err != nil {
		return nil, err
	}
	return &Injury{Text: t.who}, f.Delete(ctx, t.key, t.token)
}
