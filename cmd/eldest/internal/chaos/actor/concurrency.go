package actor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// openConcurrency is etcd's own election, used as its documentation says: a session with a
// TTL, a campaign, leadership until the session is done.
func openConcurrency(ctx context.Context, at seat) (contender, error) {
	// The session keeps the context for life; ctx bounds only the opening.
	life, end := context.WithCancel(at.Client.Ctx())
	stop := context.AfterFunc(ctx, end)
	s, err := concurrency.NewSession(at.Client, concurrency.WithTTL(int(at.TTL/time.Second)), concurrency.WithContext(life))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	return &theirs{session: s, end: end, value: at.Value, election: concurrency.NewElection(s, at.Election)}, nil
}

type theirs struct {
	session  *concurrency.Session
	end      context.CancelFunc
	election *concurrency.Election
	value    string
	stale    atomic.Bool
}

func (c *theirs) Lease() int64 { return int64(c.session.Lease()) }

// Campaign ends with the session, as users of the package have it: without one
// leadership is worth nothing.
func (c *theirs) Campaign(ctx context.Context) (tenure, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.session.Ctx(), cancel)()
	if err := c.election.Campaign(ctx, c.value); err != nil {
		return nil, err
	}
	t := &theirTenure{of: c, token: c.election.Rev(), key: c.election.Key(), done: make(chan struct{})}
	t.unhook = context.AfterFunc(c.session.Ctx(), func() { t.finish(errors.New("session done")) })
	return t, nil
}

// Usable is false also after a resignation that failed: its key may be there still, and
// another campaign would find it and win at once, with a token of the past.
func (c *theirs) Usable() bool {
	select {
	case <-c.session.Done():
		return false
	default:
		return !c.stale.Load()
	}
}

func (c *theirs) Close(ctx context.Context) {
	defer context.AfterFunc(ctx, c.end)()
	_ = c.session.Close() // what it did not come to the lease's end does
	c.end()
}

type theirTenure struct {
	of     *theirs
	token  int64
	key    string
	unhook func() bool

	once  sync.Once
	done  chan struct{}
	cause error
}

func (t *theirTenure) Token() int64          { return t.token }
func (t *theirTenure) Key() string           { return t.key }
func (t *theirTenure) Done() <-chan struct{} { return t.done }

func (t *theirTenure) Cause() error {
	<-t.done
	return t.cause
}

func (t *theirTenure) Holds() bool {
	select {
	case <-t.done:
		return false
	case <-t.of.session.Done():
		return false
	default:
		return true
	}
}

func (t *theirTenure) finish(cause error) {
	t.once.Do(func() {
		t.cause = cause
		close(t.done)
	})
}

// Guarded compares the create revision of the leader's key, as users of the package do by
// hand.
func (t *theirTenure) Guarded(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	guard := clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.token)
	return compareAndDo(ctx, t.of.session.Client(), guard, op)
}

func (t *theirTenure) Late(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	return t.Guarded(ctx, op)
}

func (t *theirTenure) Resign(ctx context.Context) error {
	t.unhook()
	t.finish(errors.New("resigned"))
	err := t.of.election.Resign(ctx)
	t.of.stale.Store(err != nil)
	return err
}
