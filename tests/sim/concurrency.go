package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Concurrency is etcd's own election, used as its documentation says: a session
// with a TTL, a campaign, leadership until the session is done. Its known faults
// are what the checkers prove themselves on.
var Concurrency = Implementation{Name: "concurrency", Open: openConcurrency}

func openConcurrency(ctx context.Context, client *clientv3.Client, as Seat) (Contender, error) {
	// The session keeps the context for life; ctx bounds only the opening.
	life, end := context.WithCancel(client.Ctx())
	stop := context.AfterFunc(ctx, end)
	s, err := concurrency.NewSession(client, concurrency.WithTTL(int(as.TTL/time.Second)), concurrency.WithContext(life))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	return &concurrencyContender{
		session: s, end: end, value: as.Value,
		election: concurrency.NewElection(s, as.Election),
	}, nil
}

type concurrencyContender struct {
	session  *concurrency.Session
	end      context.CancelFunc
	election *concurrency.Election
	value    string
}

func (c *concurrencyContender) Lease() int64 { return int64(c.session.Lease()) }

func (c *concurrencyContender) Campaign(ctx context.Context) (Tenure, error) {
	// Leadership is worth nothing without the session, so the campaign ends
	// with it: the advice of the package's users, not of its documentation. It
	// does not help when the lease is gone and the client has not noticed.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.session.Ctx(), cancel)()
	if err := c.election.Campaign(ctx, c.value); err != nil {
		return nil, err
	}
	t := &concurrencyTenure{c: c, token: c.election.Rev(), key: c.election.Key(), done: make(chan struct{})}
	t.stop = context.AfterFunc(c.session.Ctx(), func() { t.finish(errors.New("session done")) })
	return t, nil
}

func (c *concurrencyContender) Withdraw(context.Context) error { return errors.ErrUnsupported }

func (c *concurrencyContender) Usable() bool {
	select {
	case <-c.session.Done():
		return false
	default:
		return true
	}
}

func (c *concurrencyContender) Close(ctx context.Context) {
	defer context.AfterFunc(ctx, c.end)()
	_ = c.session.Close()
	c.end()
}

func (c *concurrencyContender) Abandon() {
	c.end()
	c.session.Orphan()
}

type concurrencyTenure struct {
	c     *concurrencyContender
	token int64
	key   string
	stop  func() bool

	once  sync.Once
	done  chan struct{}
	cause error
}

func (t *concurrencyTenure) Token() int64          { return t.token }
func (t *concurrencyTenure) Key() string           { return t.key }
func (t *concurrencyTenure) Done() <-chan struct{} { return t.done }

func (t *concurrencyTenure) Cause() error {
	<-t.done
	return t.cause
}

func (t *concurrencyTenure) Holds() bool {
	select {
	case <-t.done:
		return false
	default:
		return true
	}
}

func (t *concurrencyTenure) finish(cause error) {
	t.once.Do(func() {
		t.cause = cause
		close(t.done)
	})
}

func (t *concurrencyTenure) Write(ctx context.Context, key, value string) (int64, error) {
	resp, err := t.c.session.Client().Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.token)).
		Then(clientv3.OpPut(key, value)).Commit()
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrUnclear, err)
	case !resp.Succeeded:
		return 0, ErrRefused
	default:
		return resp.Header.Revision, nil
	}
}

func (t *concurrencyTenure) Resign(ctx context.Context) error {
	t.stop()
	t.finish(errors.New("resigned"))
	return t.c.election.Resign(ctx)
}
