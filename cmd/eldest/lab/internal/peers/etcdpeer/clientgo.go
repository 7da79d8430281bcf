package etcdpeer

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
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
	closing closing
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

func (c *clientGoClient) Candidate(id string) (peer.Candidate, error) {
	return &clientGoCandidate{client: c, id: id}, nil
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
	return nil
}

func (c *clientGoClient) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	c.closing.all(ctx)
	err := c.etcd.Close() // requests fail from now on, and so do electors that still try to release the lock
	c.closing.all(context.Background())
	return err
}
