package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// Eldest is this repository's own election.
var Eldest = Implementation{Name: "eldest", Open: openEldest}

func openEldest(ctx context.Context, client *clientv3.Client, as Seat) (Contender, error) {
	return openWith(ctx, client, as, sessionConfig(client, as))
}

func openWith(ctx context.Context, client *clientv3.Client, as Seat, session lease.Config) (Contender, error) {
	s, err := lease.Open(ctx, session)
	if err != nil {
		return nil, err
	}
	c, err := election.New(election.Config{
		Election: as.Election, Session: s, KV: client, Watcher: client, Value: []byte(as.Value), Recheck: as.Recheck,
		Hooks: election.Hooks{Won: func(e election.WonEvent) { as.Proven(int64(e.Token), e.Revision) }}, GiveWay: giveWay(as),
	})
	if err != nil {
		s.Abandon()
		return nil, err
	}
	e := &eldestContender{session: s, candidate: c, twoSteps: as.TwoSteps}
	if as.Asked {
		// It ends with the session: whoever closes or abandons that waits for it.
		e.asked.Go(func() {
			_ = transfer.Serve(context.Background(), transfer.Config{Candidate: c, Session: s, KV: client, Watcher: client, Recheck: as.Recheck})
		})
	}
	return e, nil
}

// giveWay tells of each time that a candidate is to give way to one that is wanted more.
func giveWay(as Seat) func(eldest.Candidate, []eldest.Candidate) bool {
	if as.Rank == nil {
		return nil
	}
	gives := election.ByPriority(as.Rank)
	return func(own eldest.Candidate, others []eldest.Candidate) bool {
		yes := gives(own, others)
		if yes {
			as.Yields()
		}
		return yes
	}
}

func sessionConfig(client *clientv3.Client, as Seat) lease.Config {
	cfg := lease.Config{Lease: client, TTL: as.TTL, Margin: as.Temper.Margin, Clock: as.Clock}
	if cfg.Clock == nil {
		// Virtual time is Go's time; the boot clock knows nothing of it.
		cfg.Clock = lease.Monotonic()
	}
	if as.Temper.Patience != 0 {
		cfg.Renewal = func(granted time.Duration) lease.Renewal {
			r := lease.DefaultRenewal(granted)
			r.Timeout = time.Duration(as.Temper.Patience * float64(granted))
			return r
		}
	}
	return cfg
}

type eldestContender struct {
	session   *lease.Session
	candidate *election.Candidate
	twoSteps  bool
	asked     sync.WaitGroup
}

func (c *eldestContender) Lease() int64 { return int64(c.session.ID()) }
func (c *eldestContender) Usable() bool { return c.session.Err() == nil }

func (c *eldestContender) Campaign(ctx context.Context) (Tenure, error) {
	l, err := c.campaign(ctx)
	switch {
	case (l == nil) == (err == nil):
		return nil, fmt.Errorf("campaign returned %v and %w", l, err)
	case err != nil:
		return nil, err
	default:
		return &eldestTenure{l}, nil
	}
}

// campaign stands in one call or in two; a registered candidate whose first call
// succeeded must wait in the second, or leave.
func (c *eldestContender) campaign(ctx context.Context) (*election.Leadership, error) {
	if !c.twoSteps {
		return c.candidate.Campaign(ctx)
	}
	if _, err := c.candidate.Register(ctx); err != nil {
		return nil, err
	}
	return c.candidate.Await(ctx)
}

func (c *eldestContender) Withdraw(ctx context.Context) error { return c.candidate.Withdraw(ctx) }

func (c *eldestContender) Close(ctx context.Context) {
	_ = c.candidate.Close(ctx)
	_ = c.session.Close(ctx)
	c.asked.Wait()
}

func (c *eldestContender) Abandon() {
	c.session.Abandon()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.candidate.Close(gone)
	c.asked.Wait()
}

type eldestTenure struct{ l *election.Leadership }

func (t *eldestTenure) Token() int64                     { return int64(t.l.Token()) }
func (t *eldestTenure) Key() string                      { return t.l.Key() }
func (t *eldestTenure) Holds() bool                      { return t.l.Holds(0) }
func (t *eldestTenure) Done() <-chan struct{}            { return t.l.Done() }
func (t *eldestTenure) Cause() error                     { return t.l.Err() }
func (t *eldestTenure) Resign(ctx context.Context) error { return t.l.Resign(ctx) }

// Write takes the library at its word: an error that does not say "unknown"
// means that nothing was written.
func (t *eldestTenure) Write(ctx context.Context, key, value string) (int64, error) {
	resp, err := t.l.Txn(ctx).Then(clientv3.OpPut(key, value)).Commit()
	switch {
	case err == nil:
		return resp.Header.Revision, nil
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		return 0, fmt.Errorf("%w: %w", ErrUnclear, err)
	default:
		return 0, fmt.Errorf("%w: %w", ErrRefused, err)
	}
}
