package campaigns

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// theirs is a candidate of etcd's package. It registers when it begins to wait.
type theirs struct {
	client   *clientv3.Client
	session  *concurrency.Session
	election *concurrency.Election
	value    string
	// life ends the waiting, by giveUp.
	life   context.Context
	giveUp context.CancelFunc
	gone   chan struct{} // closed when await has returned
}

func joinTheirs(ctx context.Context, cfg Config, client *clientv3.Client, value string) (candidate, error) {
	seconds := int64((cfg.TTL + time.Second - 1) / time.Second)
	granted, err := client.Grant(ctx, seconds)
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithLease(granted.ID), concurrency.WithTTL(int(seconds)))
	if err != nil {
		return nil, err
	}
	t := &theirs{
		client: client, session: session, election: concurrency.NewElection(session, cfg.Election), value: value,
		gone: make(chan struct{}),
	}
	t.life, t.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	return t, nil
}

func (t *theirs) stand(context.Context) error { return nil }

func (t *theirs) await(ctx context.Context) error {
	defer close(t.gone)
	defer context.AfterFunc(ctx, t.giveUp)()
	return t.election.Campaign(t.life, t.value)
}

func (t *theirs) resign(ctx context.Context) error { return t.election.Resign(ctx) }

// withdraw is how the package has one leave: the end of the context.
func (t *theirs) withdraw(ctx context.Context) error {
	t.giveUp()
	select {
	case <-t.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *theirs) lost() <-chan struct{} { return t.session.Done() }
func (t *theirs) key() string           { return t.election.Key() }

func (t *theirs) close(ctx context.Context) {
	t.giveUp()
	t.session.Orphan()
	_, _ = t.client.Revoke(ctx, t.session.Lease()) // it runs out otherwise
}
