package contender

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// herd is the protocol that is written first: everybody watches the whole election,
// and everybody asks who is the oldest whenever somebody leaves.
//
// On the wire: one transaction registers; one watch on the prefix; at each departure
// one event and one range for every candidate that waits.
type herd struct{}

func (herd) Name() string { return Herd }

func (herd) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	s, err := openRaw(ctx, client, ttl)
	if err != nil {
		return nil, err
	}
	return herdSession{s}, nil
}

func (herd) Sight(_ context.Context, client *clientv3.Client, election string) (Sight, error) {
	ctx, cancel := context.WithCancel(context.Background())
	return &herdSight{client: client, election: election, ctx: ctx, cancel: cancel}, nil
}

type herdSession struct{ *rawSession }

func (s herdSession) Candidate(election, value string) (Candidate, error) {
	return herdCandidate{s, election, value}, nil
}

type herdCandidate struct {
	herdSession
	election, value string
}

func (c herdCandidate) Campaign(ctx context.Context) (Tenure, error) {
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	// In place before the key is written, so that no departure is missed.
	feed, err := watchAll(ctx, live, c.client, c.election)
	if err != nil {
		return nil, err
	}
	key := c.key(c.election)
	token, ahead, err := c.register(ctx, c.election, c.value)
	if err != nil {
		return nil, err
	}
	for ahead != "" {
		if err := feed.departure(ctx, false); err != nil {
			return nil, err
		}
		resp, err := c.client.Get(ctx, c.election+"/", clientv3.WithFirstCreate()...)
		if err != nil {
			return nil, err
		}
		if oldest(resp.Kvs) == key {
			break
		}
	}
	return c.tenure(c, key, token), nil
}

// herdSight is a watch and a range for each observer and change.
type herdSight struct {
	client   *clientv3.Client
	election string
	ctx      context.Context
	cancel   context.CancelFunc
}

func (s *herdSight) Feed(ctx context.Context) (Feed, error) {
	feed, err := watchAll(ctx, s.ctx, s.client, s.election)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", s.election, err)
	}
	return &herdFeed{watchFeed: feed, sight: s}, nil
}

func (s *herdSight) Close(context.Context) { s.cancel() }

type herdFeed struct {
	watchFeed
	sight *herdSight
	// asked says that leader is what the last range said.
	asked  bool
	leader string
}

func (f *herdFeed) Next(ctx context.Context) (string, error) {
	if f.asked {
		if err := f.departure(ctx, f.leader == ""); err != nil {
			return "", err
		}
	}
	resp, err := f.sight.client.Get(ctx, f.sight.election+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return "", err
	}
	f.asked, f.leader = true, oldest(resp.Kvs)
	return f.leader, nil
}
