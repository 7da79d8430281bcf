package etcdpeer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/retry"
)

// periods are the three settings of client-go's elections.
type periods struct {
	lease, renew, retry time.Duration
}

var clientGoPeriods = map[string]periods{
	// The defaults of Kubernetes' own components.
	peer.Defaults: {15 * time.Second, 10 * time.Second, 2 * time.Second},
	// A candidate notices a renewal by a change of the lock, and compares its renew time in whole seconds. So the
	// renewal that it counts from may be 1 s older than the last one. With a lease of 1 s that leaves nothing:
	// in 10 rounds in which the leader was partitioned there were two leaders for up to 1.2 s.
	peer.Shortest: {2 * time.Second, 700 * time.Millisecond, 200 * time.Millisecond},
}

// ClientGo is client-go's leader election, with its lock in etcd.
func ClientGo() peer.System {
	setting := func(name string, values ...string) peer.Setting {
		return peer.Setting{
			Values: append(values, "ReleaseOnCancel: a leader that resigns releases the lock"),
			Loss:   clientGoPeriods[name].lease,
		}
	}
	return peer.System{
		Name: "client-go", Title: "client-go",
		Recipe: "The leader writes its name and a time into a lock object, again and again. All other candidates read the object at intervals. " +
			"A candidate takes the lock when it is free, or when it has not changed for the duration of the lease.",
		Links: []peer.Link{
			{Text: "package leaderelection", URL: "https://pkg.go.dev/k8s.io/client-go/tools/leaderelection"},
			{Text: "leases in Kubernetes", URL: "https://kubernetes.io/docs/concepts/architecture/leases/"},
		},
		Module: "k8s.io/client-go",
		Unfair: []string{
			"To its advantage: its lock is one key of etcd, which candidates read and write without an API server. " +
				"In Kubernetes each request passes an API server, which takes longer.",
			"To its disadvantage: it is made for controllers that tolerate a change of leader that takes seconds, and for a server that they use already.",
			"To its disadvantage: it has no observers. An observer reads the lock at the intervals of a candidate that waits.",
			"To its disadvantage: with ReleaseOnCancel a leader that cannot renew tries to release the lock before it reports the loss, " +
				"which delays the report by up to half of RenewDeadline, or 1 s. Without it each resignation would take a whole lease.",
			"To its disadvantage: its documentation says that it does not guarantee a single leader, and it has no guard for what a leader writes.",
		},
		Settings: map[string]peer.Setting{
			peer.Defaults: setting(peer.Defaults,
				"LeaseDuration 15 s, RenewDeadline 10 s and RetryPeriod 2 s, the defaults of Kubernetes' components"),
			peer.Shortest: setting(peer.Shortest,
				"LeaseDuration 2 s, RenewDeadline 700 ms and RetryPeriod 200 ms, chosen by the authors of this benchmark: the documentation has no lower limits",
				"a LeaseDuration of 1 s is accepted, but candidates compare renew times in whole seconds, and may count a lease as 1 s older than it is"),
		},
		Start: start,
		Dial:  dialClientGo,
	}
}

// clientGoClient is the client of a participant that uses client-go.
type clientGoClient struct {
	*connection
	periods periods
}

// dialClientGo sets the keepalives that the API server sets for its client of etcd.
func dialClientGo(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	conn, err := open(ctx, cfg, clientv3.Config{
		DialTimeout: 20 * time.Second, DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second,
	}, clientv3.New)
	if err != nil {
		return nil, err
	}
	return &clientGoClient{connection: conn, periods: clientGoPeriods[cfg.Setting]}, nil
}

// Observe reads the lock as a candidate that waits does: client-go has nothing for clients that only observe.
func (c *clientGoClient) Observe(ctx context.Context, leads func(id string)) error {
	lock, told := c.lock(c.cfg.ID, nil), ""
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		record, _, err := lock.Get(ctx)
		if err != nil || record.HolderIdentity == "" || record.HolderIdentity == told {
			return // the next read may succeed
		}
		told = record.HolderIdentity
		leads(told)
	}, c.periods.retry, leaderelection.JitterFactor, true)
	return ctx.Err()
}

// errNotElected is returned if an elector ended before it led; it does so only if its client is closed.
var errNotElected = errors.New("the elector ended before it led")

// Campaign runs client-go's elector.
func (c *clientGoClient) Campaign(ctx context.Context, id string, queued func()) (peer.Tenure, error) {
	waits := sync.OnceFunc(queued)
	lock := c.lock(id, func(holder string) {
		if holder != "" && holder != id {
			waits()
		}
	})
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true, Name: c.cfg.Election,
		LeaseDuration: c.periods.lease, RenewDeadline: c.periods.renew, RetryPeriod: c.periods.retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { started <- leading },
			OnStoppedLeading: func() {}, // leading ends just before
		},
	})
	if err != nil {
		return nil, err
	}
	// client-go logs to stderr unless the context has a logger.
	life, cancel := context.WithCancel(logr.NewContext(context.Background(), logr.Discard()))
	t := &clientGoTenure{client: c, cancel: cancel, over: make(chan struct{})}
	c.life.AtEnd(func(ctx context.Context) { _ = t.Resign(ctx) })
	c.life.Go(func() {
		defer close(t.over)
		elector.Run(life)
	})
	select {
	case t.leading = <-started:
		return t, nil
	case <-t.over:
		return nil, errNotElected
	case <-ctx.Done():
		cancel()
		<-t.over
		return nil, context.Cause(ctx)
	}
}

// clientGoTenure is an elector that runs, and that leads or has led.
type clientGoTenure struct {
	client *clientGoClient
	cancel context.CancelFunc
	over   chan struct{}
	// leading is the context that client-go passed to the user's function. It ends with the tenure.
	leading context.Context
}

func (t *clientGoTenure) Holds() bool { return t.leading.Err() == nil }

// Append has no guard: client-go gives its users nothing that a store could compare.
func (t *clientGoTenure) Append(ctx context.Context, entry string) error {
	_, err := t.client.etcd.Do(ctx, t.client.entry(entry))
	return err
}

// Resign makes the elector release the lock, if it holds it, and waits for the elector's end until ctx ends.
func (t *clientGoTenure) Resign(ctx context.Context) error {
	t.cancel()
	return retry.Wait(ctx, t.over)
}
