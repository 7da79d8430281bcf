package etcdpeer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// concurrencyCandidate is one campaign of a session of its own.
type concurrencyCandidate struct {
	client *concurrencyClient
	id     string
}

// Campaign also ends with the session: etcd's package would wait on, with a key that does not exist. If ctx
// ends while etcd does not answer, it blocks until the client is closed: the package deletes the key first.
func (c *concurrencyCandidate) Campaign(ctx context.Context, queued func()) (peer.Tenure, error) {
	s, end, err := c.client.session(ctx)
	if err != nil {
		return nil, err
	}
	campaign, cancel := context.WithCancel(context.WithValue(ctx, queuedKey{}, &predecessor{queued: queued}))
	defer cancel()
	defer context.AfterFunc(s.Ctx(), cancel)()
	e := concurrency.NewElection(s, c.client.cfg.Election)
	if err := e.Campaign(campaign, c.id); err != nil {
		return nil, err
	}
	return &concurrencyTenure{client: c.client, session: s, end: end, election: e, key: e.Key(), revision: e.Rev()}, nil
}

// concurrencyTenure is a tenure, which the session's end ends.
type concurrencyTenure struct {
	client   *concurrencyClient
	session  *concurrency.Session
	end      func(context.Context) error
	election *concurrency.Election
	key      string // the leader's key, and its create revision
	revision int64
	resigned atomic.Bool
}

func (t *concurrencyTenure) Holds() bool {
	select {
	case <-t.session.Done():
		return false
	default:
		return !t.resigned.Load()
	}
}

// Append is what programs add: the package does not guard a leader's writes.
func (t *concurrencyTenure) Append(ctx context.Context, entry string) error {
	resp, err := t.client.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.revision)).
		Then(t.client.entry(entry)).
		Commit()
	switch {
	case err != nil:
		return err
	case !resp.Succeeded:
		return fmt.Errorf("%w: the leader's key was deleted", peer.ErrRefused)
	default:
		return nil
	}
}

func (t *concurrencyTenure) Resign(ctx context.Context) error {
	t.resigned.Store(true)
	return errors.Join(t.election.Resign(ctx), t.end(ctx))
}

// queuedKey is the key of a campaign's predecessor in its context.
type queuedKey struct{}

// predecessor notifies a campaign, once, that it has a predecessor.
type predecessor struct {
	told   bool
	queued func()
}

// reads is a client's KV that sees the answers to the reads of campaigns. After the registration a campaign
// reads its predecessor; if there is one, it is queued. The package itself has no such notification.
type reads struct{ clientv3.KV }

func (r reads) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := r.KV.Get(ctx, key, opts...)
	if p, ok := ctx.Value(queuedKey{}).(*predecessor); ok && err == nil && len(resp.Kvs) > 0 && !p.told {
		p.told = true
		p.queued()
	}
	return resp, err
}
