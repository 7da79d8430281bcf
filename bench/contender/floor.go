package contender

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// floor is what the cluster and the client cost without a protocol: somebody deletes a
// key, somebody else's watch says so. Its win proves nothing.
//
// On the wire: a registration, so that there is a key; one watch on the predecessor's;
// a delete. Between the delete and the event there is nothing else.
type floor struct{}

func (floor) Name() string { return Floor }

func (floor) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	s, err := openRaw(ctx, client, ttl)
	if err != nil {
		return nil, err
	}
	return floorSession{s}, nil
}

// Sight is not for the floor: an observer that learns who leads does more than watch.
func (floor) Sight(context.Context, *clientv3.Client, string) (Sight, error) {
	return nil, fmt.Errorf("the floor observes nothing: %w", errors.ErrUnsupported)
}

type floorSession struct{ *rawSession }

func (s floorSession) Candidate(election, value string) (Candidate, error) {
	return floorCandidate{s, election, value}, nil
}

type floorCandidate struct {
	floorSession
	election, value string
}

func (c floorCandidate) Campaign(ctx context.Context) (Tenure, error) {
	token, ahead, err := c.register(ctx, c.election, c.value)
	if err == nil && ahead != "" {
		err = c.await(ctx, ahead)
	}
	if err != nil {
		return nil, err
	}
	return floorTenure{c.tenure(c, c.key(c.election), token)}, nil
}

// await blocks until a key was deleted.
func (c floorCandidate) await(ctx context.Context, key string) error {
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	// Without a start revision: the server puts the watch in place at once, not at
	// its next round.
	events := c.client.Watch(live, key, clientv3.WithCreatedNotify())
	for {
		select {
		case resp, ok := <-events:
			switch {
			case !ok:
				return errEnded
			case resp.Err() != nil:
				return resp.Err()
			case resp.Created:
				// It may have gone before the watch was there.
				before, err := c.client.Get(ctx, key, clientv3.WithCountOnly())
				if err != nil || before.Count == 0 {
					return err
				}
			case len(resp.Events) > 0 && resp.Events[0].Type == clientv3.EventTypeDelete:
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

type floorTenure struct{ *tenure }

// Context never ends: the floor does not look whether its key is there.
func (floorTenure) Context() context.Context { return context.Background() }

// Do is a transaction without any protection.
func (t floorTenure) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	return t.client.Txn(ctx).Then(op).Commit()
}
