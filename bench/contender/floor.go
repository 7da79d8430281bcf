package contender

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func init() { register(floor{}) }

// floor is what the cluster and the client cost without a protocol: somebody deletes a
// key, somebody else's watch says so. Its win proves nothing.
//
// On the wire: a registration, so that there is a key; one watch on the predecessor's;
// a delete. Between the delete and the event there is nothing else.
type floor struct{}

func (floor) Name() string { return "floor" }

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
	return &floorCandidate{rawSession: s.rawSession, election: election, value: value}, nil
}

type floorCandidate struct {
	*rawSession
	election, value string
}

func (c *floorCandidate) Key() string { return c.key(c.election) }

func (c *floorCandidate) Campaign(ctx context.Context) (time.Time, error) {
	_, ahead, err := c.register(ctx, c.election, c.value)
	if err != nil || ahead == "" {
		return time.Now(), err
	}
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	// Without a start revision: the server puts the watch in place at once, not at
	// its next round.
	events := c.client.Watch(live, ahead, clientv3.WithCreatedNotify())
	for {
		select {
		case resp, ok := <-events:
			switch {
			case !ok:
				return time.Time{}, errEnded
			case resp.Err() != nil:
				return time.Time{}, resp.Err()
			case resp.Created:
				// It may have gone before the watch was there.
				before, err := c.client.Get(ctx, ahead, clientv3.WithCountOnly())
				if err != nil || before.Count == 0 {
					return time.Now(), err
				}
			case len(resp.Events) > 0 && resp.Events[0].Type == clientv3.EventTypeDelete:
				return time.Now(), nil
			}
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

func (c *floorCandidate) Resign(ctx context.Context) error {
	_, err := c.client.Delete(ctx, c.Key())
	return err
}

// Lost never comes: nobody looks.
func (c *floorCandidate) Lost() <-chan time.Time { return nil }

// Put is a transaction without any protection.
func (c *floorCandidate) Put(ctx context.Context, key, value string) error {
	_, err := c.client.Txn(ctx).Then(clientv3.OpPut(key, value, clientv3.WithLease(c.lease))).Commit()
	return err
}
