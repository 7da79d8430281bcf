package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Revoker is an etcd client that is kept ready to revoke leases. Made by NewRevoker. The keeper has
// one; so can processes that watch others in their own way. Its goroutine ends with the process,
// which has nothing else to do, also if dial does not return.
type Revoker struct {
	dialed chan struct{} // closed when there is a client
	client *clientv3.Client
}

const (
	// idle is the time between two requests that keep the connection open, and its token fresh.
	idle = 30 * time.Second
	// attempt bounds one request.
	attempt = time.Second
	// abreast is the maximum number of requests under way.
	abreast = 16
)

// NewRevoker returns at once. It dials until it has a client, and keeps its connection open. Calls
// of dial do not overlap.
func NewRevoker(dial func(ctx context.Context) (*clientv3.Client, error)) *Revoker {
	e := &Revoker{dialed: make(chan struct{})}
	go e.keepReady(dial)
	return e
}

func (e *Revoker) keepReady(dial func(ctx context.Context) (*clientv3.Client, error)) {
	ctx := context.Background()
	for failures := 0; e.client == nil; failures++ {
		client, err := dial(ctx)
		if err != nil || client == nil {
			time.Sleep(retry.Default()(failures))
			continue
		}
		e.client = client
	}
	close(e.dialed)
	for ; ; time.Sleep(idle) {
		once, cancel := context.WithTimeout(ctx, attempt)
		_, _ = e.client.MemberList(once) // only for the connection
		cancel()
	}
}

// within revokes leases, and blocks until etcd has answered for each or the time is over; then it
// returns the errors. A lease that does not exist is a success.
func (e *Revoker) within(d time.Duration, leases []clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := retry.Wait(ctx, e.dialed); err != nil {
		return fmt.Errorf("no etcd client: %w", err)
	}
	slots := make(chan struct{}, abreast)
	failed := make([]error, len(leases))
	var under sync.WaitGroup
	for i, id := range leases {
		slots <- struct{}{}
		under.Go(func() {
			defer func() { <-slots }()
			failed[i] = e.revoke(ctx, id)
		})
	}
	under.Wait()
	return errors.Join(failed...)
}

// promptly is how long RevokeAll tries before it redirects the standard streams.
const promptly = 2 * time.Second

// RevokeAll revokes the leases of a dead process, as the last action of its keeper. It blocks until
// etcd has answered for each, or the longest TTL of them has passed, and then returns the errors. A
// lease that does not exist is a success. After two seconds without success it reports that on
// stderr and then redirects the process's standard streams to /dev/null: the program that started
// the process may wait for the end of those streams before it restarts it, and must not wait for
// etcd.
func (e *Revoker) RevokeAll(longest time.Duration, leases ...clientv3.LeaseID) error {
	err := e.within(min(promptly, longest), leases)
	if err == nil || longest <= promptly {
		return err
	}
	fmt.Fprintf(os.Stderr, "eldest keeper: %v; retrying until the lease expires\n", err)
	silence()
	return e.within(longest-promptly, leases)
}

func (e *Revoker) revoke(ctx context.Context, id clientv3.LeaseID) error {
	policy := retryrpc.Policy{Client: e.client, Timeout: attempt, Backoff: retry.Default()}
	err := policy.Until(ctx, func(ctx context.Context) error {
		_, err := e.client.Revoke(ctx, id)
		if rpcerr.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke lease %x of the dead process (it will expire): %w", id, err)
	}
	return nil
}
