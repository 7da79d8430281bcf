package contender

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// herd is the simplest protocol: every candidate watches the whole election, and reads which
// candidate is the oldest whenever one of them leaves.
//
// On the wire: one watch on the prefix; one transaction registers; at each departure one event and
// one range for every candidate that waits.
var herd = raw{
	name: Herd,
	// The watch is created before the key is written, so that no departure is missed.
	prepare: func(ctx context.Context, c *rawCandidate) (err error) {
		c.feed, err = watchAll(ctx, ctx, c.client, c.election)
		return err
	},
	wait: func(ctx context.Context, c *rawCandidate, _ string) error {
		for {
			if err := c.feed.departure(ctx, false); err != nil {
				return err
			}
			if leader, err := c.feed.oldest(ctx); err != nil || leader.Key == c.key {
				return err
			}
		}
	},
	sight: func(client *clientv3.Client, election string) Sight {
		ctx, cancel := context.WithCancel(context.Background())
		return &herdSight{client: client, election: election, ctx: ctx, cancel: cancel}
	},
}

// herdSight sends a range for each observer and change, and each observer has a watch.
type herdSight struct {
	client   *clientv3.Client
	election string
	ctx      context.Context
	cancel   context.CancelFunc
}

func (s *herdSight) Feed(ctx context.Context) (Feed, error) {
	feed, err := watchAll(ctx, s.ctx, s.client, s.election)
	return &herdFeed{watchFeed: feed}, err
}

func (s *herdSight) Close(context.Context) { s.cancel() }

type herdFeed struct {
	watchFeed
	// asked means that leader is the result of the last range.
	asked  bool
	leader Leader
}

func (f *herdFeed) Next(ctx context.Context) (leader Leader, err error) {
	if f.asked {
		if err := f.departure(ctx, f.leader.Key == ""); err != nil {
			return leader, err
		}
	}
	f.leader, err = f.oldest(ctx)
	f.asked = err == nil
	return f.leader, err
}

// watchFeed is a watch on a whole election.
type watchFeed struct {
	client   *clientv3.Client
	election string
	events   clientv3.WatchChan
}

// watchAll opens a watch that lasts until live ends, and blocks until it is created.
func watchAll(ctx, live context.Context, client *clientv3.Client, election string) (watchFeed, error) {
	// The client's Watch blocks until the server has answered.
	live, cancel := context.WithCancel(live)
	defer context.AfterFunc(ctx, cancel)()
	f := watchFeed{client: client, election: election}
	f.events = client.Watch(clientv3.WithRequireLeader(live), election+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if _, err := f.next(ctx); err != nil {
		return f, fmt.Errorf("watching %s: %w", election, err)
	}
	return f, nil
}

func (f watchFeed) next(ctx context.Context) (clientv3.WatchResponse, error) {
	select {
	case resp, ok := <-f.events:
		if !ok {
			return resp, errEnded
		}
		return resp, resp.Err()
	case <-ctx.Done():
		return clientv3.WatchResponse{}, context.Cause(ctx)
	}
}

// departure blocks until a key was deleted; if joined is set, a new key is enough, too.
func (f watchFeed) departure(ctx context.Context, joined bool) error {
	for {
		resp, err := f.next(ctx)
		if err != nil {
			return err
		}
		for _, e := range resp.Events {
			if joined || e.Type == clientv3.EventTypeDelete {
				return nil
			}
		}
	}
}

// oldest returns the oldest candidate.
func (f watchFeed) oldest(ctx context.Context) (Leader, error) {
	resp, err := f.client.Get(ctx, f.election+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return Leader{}, err
	}
	return leaderOf(resp), nil
}

// leaderOf returns the leader in a response, of which it is the only key.
func leaderOf(resp *clientv3.GetResponse) (l Leader) {
	for _, kv := range resp.Kvs {
		l = Leader{string(kv.Key), string(kv.Value)}
	}
	return l
}
