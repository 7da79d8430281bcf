package etcdpeer

import (
	"context"
	"errors"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// errNotElected is returned if an elector ended before it led; it does so only if its client is closed.
var errNotElected = errors.New("the elector ended before it led")

// clientGoCandidate is one run of client-go's elector.
type clientGoCandidate struct {
	client *clientGoClient
	id     string
}

func (c *clientGoCandidate) Campaign(ctx context.Context, queued func()) (peer.Tenure, error) {
	waits := sync.OnceFunc(queued)
	lock := c.client.lock(c.id, func(holder string) {
		if holder != "" && holder != c.id {
			waits()
		}
	})
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true, Name: c.client.cfg.Election,
		LeaseDuration: c.client.periods.lease, RenewDeadline: c.client.periods.renew, RetryPeriod: c.client.periods.retry,
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
	run := &clientGoRun{cancel: cancel, over: make(chan struct{})}
	if err := c.client.closing.add(run.end); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(run.over)
		elector.Run(life)
	}()
	select {
	case leading := <-started:
		return &clientGoTenure{clientGoRun: run, client: c.client, leading: leading}, nil
	case <-run.over:
		return nil, errNotElected
	case <-ctx.Done():
		cancel()
		<-run.over
		return nil, context.Cause(ctx)
	}
}

// clientGoRun is an elector that runs.
type clientGoRun struct {
	cancel context.CancelFunc
	over   chan struct{}
}

// end makes the elector release the lock, if it holds it, and waits for the elector's end until ctx ends.
func (r *clientGoRun) end(ctx context.Context) error {
	r.cancel()
	select {
	case <-r.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// clientGoTenure is a tenure.
type clientGoTenure struct {
	*clientGoRun
	client *clientGoClient
	// leading is the context that client-go passed to the user's function. It ends with the tenure.
	leading context.Context
}

func (t *clientGoTenure) Holds() bool { return t.leading.Err() == nil }

// Append has no guard: client-go gives its users nothing that a store could compare.
func (t *clientGoTenure) Append(ctx context.Context, entry string) error {
	_, err := t.client.etcd.Do(ctx, t.client.entry(entry))
	return err
}

func (t *clientGoTenure) Resign(ctx context.Context) error { return t.end(ctx) }
