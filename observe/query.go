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
	if err := checkQuery(ctx, kv, election); err != nil {
		return eldest.Leader{}, failed("leader", election, err)
	}
	var leader *eldest.Candidate
	err := asking(kv).Until(ctx, func(ctx context.Context) error {
		leader = nil
		return eachCandidate(ctx, kv, election, 1, func(c eldest.Candidate) bool {
			leader = &c
			return false
		})
	})
	if err == nil && leader == nil {
		err = eldest.ErrNoLeader
	}
	if err != nil {
		return eldest.Leader{}, failed("leader", election, err)
	}
	return *leader, nil
}

// Queue returns the candidates in their order, the leader first; an empty queue is no error. The
// queue is read in one request, at one revision. If leases is not nil, Queue also requests the
// remaining TTL of each candidate's lease, with one request for each. It blocks until one of etcd's
// members has responded, or ctx ends.
func Queue(ctx context.Context, kv clientv3.KV, leases clientv3.Lease, election string) ([]Entry, error) {
	if err := checkQuery(ctx, kv, election); err != nil {
		return nil, failed("queue", election, err)
	}
	var queue []Entry
	err := asking(kv).Until(ctx, func(ctx context.Context) error {
		queue = nil
		return eachCandidate(ctx, kv, election, 0, func(c eldest.Candidate) bool {
			queue = append(queue, Entry{Candidate: c, TTL: -1})
			return true
		})
	})
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

// eachCandidate calls f for the candidates, oldest first, until f returns false. limit is how many
// keys are read at first; 0: all. If none of those is a candidate's, the rest is read as well.
func eachCandidate(ctx context.Context, kv clientv3.KV, election string, limit int64, f func(eldest.Candidate) bool) error {
	begin, end := keys.Range(election)
	resp, err := kv.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(limit),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return err
	}
	called := false
	for _, kv := range resp.Kvs {
		if !view.Candidate(election, kv) {
			continue
		}
		called = true
		if !f(candidate(election, kv)) {
			return nil
		}
	}
	if !called && resp.More {
		return eachCandidate(ctx, kv, election, 0, f)
	}
	return nil
}

// checkQuery returns an error for bad input of a single query before anything is sent.
func checkQuery(ctx context.Context, kv clientv3.KV, election string) error {
	if ctx == nil {
		return fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	return checkTarget(kv, election)
}

// checkTarget returns an error if the election cannot be queried or observed with these arguments.
func checkTarget(kv clientv3.KV, election string) error {
	if absent.Client(kv) {
		return fmt.Errorf("%w: the client is nil", eldest.ErrInvalid)
	}
	return keys.Check(election)
}
