package chaos

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
)

// What is done to etcd by an operator.

// moveLeader is proven by a majority that follows the other member.
func moveLeader(ctx context.Context, s *series, in Injection) (string, healer, error) {
	from, err := s.Leader(ctx)
	if err != nil {
		return "", nil, err
	}
	to := (from + 1 + in.Pick%(s.Size()-1)) % s.Size()
	s.note("etcd's leader moves from %d to %d", from, to)
	return fmt.Sprintf("from member %d to %d", from, to), nil, s.MoveLeader(ctx, to) // it asks who leads until it is that one
}

// compact is proven by the past, which cannot be read any more. All of it was recorded
// before.
func compact(ctx context.Context, s *series, _ Injection) (string, healer, error) {
	var rev int64
	err := inject.Until(ctx, "that etcd has a revision", func(ctx context.Context) (_ bool, err error) {
		rev, err = s.Revision(ctx)
		return err == nil, err
	})
	if err == nil {
		err = s.recorded.reached(ctx, rev)
	}
	if err != nil {
		return "", nil, err
	}
	s.note("compaction up to %d", rev)
	return fmt.Sprintf("up to revision %d", rev), nil, inject.Until(ctx, "that the past cannot be read", func(ctx context.Context) (bool, error) {
		_, err := s.All.Compact(ctx, rev, clientv3.WithCompactPhysical())
		if err == nil || errors.Is(err, rpctypes.ErrCompacted) { // an attempt whose answer was lost
			_, err = s.All.Get(ctx, dataKey, clientv3.WithRev(rev-1))
		}
		if errors.Is(err, rpctypes.ErrCompacted) {
			return true, nil
		}
		return false, err
	})
}

// defragment is proven by the members' answers.
func defragment(ctx context.Context, s *series, _ Injection) (string, healer, error) {
	s.note("defragmentation")
	return "all members", nil, s.Defragment(ctx)
}

// target is a candidate's key that an operator takes away.
type target struct {
	key, who     string
	token, lease int64
}

// target finds the key of a participant that has the role, and tells its removal, which
// comes next: nobody may be notified of it before.
func (s *series) target(ctx context.Context, in Injection) (t target, err error) {
	c, err := s.pick(ctx, in)
	if err != nil {
		return t, err
	}
	err = inject.Until(ctx, "that "+c.who+" has a key", func(ctx context.Context) (bool, error) {
		t = target{who: c.who, lease: c.last().Lease}
		t.key = keys.Candidate(electionName, t.lease)
		resp, err := s.All.Get(ctx, t.key)
		if err != nil || len(resp.Kvs) == 0 { // it registers in a moment
			return false, err
		}
		t.token = resp.Kvs[0].CreateRevision
		return true, nil
	})
	if err == nil {
		s.tell(oracle.Event{Kind: oracle.Removed, Who: "admin", Token: t.token, Key: t.key, Lease: t.lease})
	}
	return t, err
}

// revoke is proven by etcd, which has the lease and its key no more.
func revoke(ctx context.Context, s *series, in Injection) (string, healer, error) {
	t, err := s.target(ctx, in)
	if err != nil {
		return "", nil, err
	}
	err = inject.Until(ctx, "that a lease is revoked", func(ctx context.Context) (bool, error) {
		_, err := s.All.Revoke(ctx, clientv3.LeaseID(t.lease))
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return true, nil // an attempt whose answer was lost
		}
		return err == nil, err
	})
	if err == nil {
		err = s.Gone(ctx, t.key, t.token)
	}
	return t.who, nil, err
}

// remove is proven by etcd, which has the key no more.
func remove(ctx context.Context, s *series, in Injection) (string, healer, error) {
	t, err := s.target(ctx, in)
	if err != nil {
		return "", nil, err
	}
	return t.who, nil, s.Delete(ctx, t.key, t.token)
}
