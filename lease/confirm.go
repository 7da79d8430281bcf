package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Majority answers a question that only a majority of etcd's members can answer
// together. *clientv3.Client and clientv3.Cluster do.
type Majority interface {
	// MemberList is asked without options. What is wanted is not the list but the
	// header: a majority has just confirmed whom it follows, in which Raft term.
	// Unlike a read of a key, it needs no permission.
	MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error)
}

// errDeposed is said of a renewal by a member that may not have led etcd any more.
var errDeposed = errors.New("the member that confirmed the renewal may have been replaced as etcd's leader before")

// confirm asks a majority whether the renewal means what it says.
//
// etcd's leader answers renewals by itself. One that was stopped and goes on, or was
// cut off, does so until it hears of its successor, whose count knows nothing of that:
// measured, a leader that was stopped for a second confirms three of four renewals that
// wait for it. So after the answer, whose header bears a Raft term from before it was
// given, the majority is asked. If it is of no later term, nobody else led etcd when the
// renewal was confirmed, and every later leader counts from a later moment.
//
// It blocks until the answer or ctx ends; each of two attempts has timeout at most,
// because a member that swallows requests must not cost the renewal.
func (c Config) confirm(ctx context.Context, renewal *clientv3.LeaseKeepAliveResponse, timeout time.Duration) error {
	term := renewal.GetRaftTerm()
	if c.Majority == nil || term == 0 {
		return nil
	}
	var err error
	for range 2 {
		var now uint64
		if now, err = c.majorityTerm(ctx, timeout); err == nil {
			if now > term {
				return fmt.Errorf("%w: its Raft term is %d, the majority's %d", errDeposed, term, now)
			}
			return nil
		}
	}
	return fmt.Errorf("no majority confirmed the renewal: %w", err)
}

func (c Config) majorityTerm(ctx context.Context, timeout time.Duration) (uint64, error) {
	return twice(ctx, timeout, always, func(ctx context.Context) (uint64, error) {
		resp, err := c.Majority.MemberList(ctx)
		if err != nil {
			return 0, err
		}
		return resp.Header.GetRaftTerm(), nil
	})
}

// majority finds out who answers for the majority where the caller has not said.
func majority(l clientv3.Lease) Majority {
	if client, ok := l.(*clientv3.Client); ok && client.Cluster == nil {
		return nil // one put together from parts: calling it would panic
	}
	m, _ := l.(Majority)
	return m
}
