package observe

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/view"
	"github.com/eldest-io/eldest/keys"
)

// Entry is one candidate in the queue.
type Entry struct {
	eldest.Candidate
	// TTL is the remaining time of the candidate's lease, in whole seconds as etcd reports it;
	// negative if the lease has expired or was revoked, or if the time was not requested.
	TTL time.Duration
}

// LeaderOf reads the present leader: one request, unless keys of non-candidates are older. It
// blocks until one of etcd's members responds, or ctx ends. For an empty queue the error wraps
// eldest.ErrNoLeader.
func LeaderOf(ctx context.Context, kv clientv3.KV, election string) (eldest.Leader, error) {
	oldest, err := read(ctx, kv, election, 1)
	if err == nil && len(oldest) == 0 {
		err = eldest.ErrNoLeader
	}
	if err != nil {
		return eldest.Leader{}, failed("leader", election, err)
	}
	return oldest[0], nil
}

// Queue returns the candidates in their order, the leader first; an empty queue is no error. The
// queue is read in one request, at one revision. If leases is not nil, Queue also requests the
// remaining TTL of each candidate's lease, with one request for each. It blocks until one of etcd's
// members has responded, or ctx ends.
func Queue(ctx context.Context, kv clientv3.KV, leases clientv3.Lease, election string) ([]Entry, error) {
	candidates, err := read(ctx, kv, election, 0)
	var queue []Entry
	for _, c := range candidates {
		queue = append(queue, Entry{Candidate: c, TTL: -1})
	}
	for i := 0; err == nil && !absent.Client(leases) && i < len(queue); i++ {
		err = asking(leases).Until(ctx, func(ctx context.Context) error {
			left, err := leases.TimeToLive(ctx, clientv3.LeaseID(queue[i].Lease))
			if err == nil {
				queue[i].TTL = time.Duration(left.TTL) * time.Second
			}
			return err
		})
	}
	if err != nil {
		return nil, failed("queue", election, err)
	}
	return queue, nil
}

// asking is the policy of a single query: a member that does not respond costs one attempt.
func asking(client any) retryrpc.Policy {
	return retryrpc.Policy{Client: client, Timeout: DefaultTimeout, Backoff: retry.Default()}
}

// read returns the candidates among the oldest keys of an election, oldest first. limit is how many
// keys are read; 0: all. If none of them is a candidate's, all keys are read.
func read(ctx context.Context, kv clientv3.KV, election string, limit int64) (candidates []eldest.Candidate, err error) {
	switch {
	case ctx == nil:
		return nil, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	case absent.Client(kv):
		return nil, fmt.Errorf("%w: the client is nil", eldest.ErrInvalid)
	}
	if err := keys.Check(election); err != nil {
		return nil, err
	}
	begin, end := keys.Range(election)
	more := false
	err = asking(kv).Until(ctx, func(ctx context.Context) error {
		resp, err := kv.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(limit),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err == nil {
			candidates, _ = view.Queue(election, resp.Kvs)
			more = resp.More
		}
		return err
	})
	if err == nil && len(candidates) == 0 && more {
		return read(ctx, kv, election, 0)
	}
	return candidates, err
}
