package keeper

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/subprocess"
)

// Keeper is this process's handle of its keeper. Made by Start, ended by Close. All methods are
// safe for concurrent use. A nil *Keeper is no keeper: Hold and Drop do nothing.
type Keeper struct {
	process *os.Process

	mu     sync.Mutex
	orders *os.File // nil once no more orders can be sent

	over chan struct{} // closed when the keeper has ended
	err  error         // how; valid once over is closed
	// ended is true once Close has sent the order to end.
	ended atomic.Bool
}

// variable is set in the environment of the keeper, to the ID of the process that it watches.
const variable = "ELDEST_KEEPER_OF"

// served is true once Serve was called: a process that is started again will call it, too.
var served atomic.Bool

// Serve must be called by main before Start, and before anything that only one process may do:
// first of all. In the keeper it does the work of the keeper with the client that dial makes, and
// never returns. In all other processes it returns at once. The keeper has the same arguments and
// environment; stdin and stdout are /dev/null.
//
// dial receives what Start received, for example how to reach etcd, in a format that the program
// chooses. Calls of dial do not overlap. It is called until it succeeds, and may return before
// there is a connection.
func Serve(dial func(ctx context.Context, with []byte) (*clientv3.Client, error)) {
	if of := os.Getenv(variable); of != "" {
		code := 0
		if err := serve(of, dial); err != nil {
			fmt.Fprintln(os.Stderr, "eldest keeper:", err)
			code = 1
		}
		os.Exit(code)
	}
	served.Store(true)
}

// mostWith is the largest argument for dial that Start accepts.
const mostWith = 1 << 20

// patience is how long Start waits for the keeper to begin.
const patience = 30 * time.Second

// Start starts the keeper, and blocks until it watches this process, ctx ends, or half a minute has
// passed. It does not wait until the keeper reaches etcd. with is the argument for dial (see
// Serve): at most a megabyte, which no other process sees. Errors: eldest.ErrInvalid if Serve was
// not called before, or for a bad argument; errors.ErrUnsupported on a system without pidfd; the
// error of the system if the process cannot be started. After an error nothing is left running.
// Close the keeper before the process becomes another program (exec).
func Start(ctx context.Context, with []byte) (*Keeper, error) {
	if !served.Load() {
		return nil, fmt.Errorf("start keeper: %w: call keeper.Serve first in main", eldest.ErrInvalid)
	}
	if ctx == nil {
		return nil, fmt.Errorf("start keeper: %w: the context is nil", eldest.ErrInvalid)
	}
	if len(with) > mostWith {
		return nil, fmt.Errorf("start keeper: %w: %d bytes for dial, at most %d are allowed", eldest.ErrInvalid, len(with), mostWith)
	}
	k, begun, err := start(with)
	if err != nil {
		return nil, fmt.Errorf("start keeper: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case err = <-begun:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		k.kill()
		<-k.over
		return nil, fmt.Errorf("start keeper: the keeper did not become ready: %w", err)
	}
	return k, nil
}

// Hold makes the keeper revoke a lease when this process has died. If etcd cannot be reached, the
// keeper tries for the lease's TTL, and then leaves the lease to expire. Hold does not block.
// Sessions call it, if lease.Config.Keeper is set.
func (k *Keeper) Hold(id clientv3.LeaseID, ttl time.Duration) { k.tell("hold %x %d\n", id, ttl) }

// Drop takes one Hold back: two sessions of one lease hold it until both have ended. Then this process
// revokes the lease, or leaves it to another one.
func (k *Keeper) Drop(id clientv3.LeaseID) { k.tell("drop %x\n", id) }

// tell sends an order. A keeper that does not read a full pipe would have wrong information and be
// useless: it is killed.
func (k *Keeper) tell(order string, args ...any) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.orders == nil {
		return
	}
	if err := subprocess.Offer(k.orders, fmt.Appendf(nil, order, args...)); err != nil {
		k.kill()
		k.hangUp()
	}
}

// hangUp closes the pipe of the orders. The caller holds mu.
func (k *Keeper) hangUp() {
	if k.orders != nil {
		_ = k.orders.Close()
		k.orders = nil
	}
}

func (k *Keeper) kill() { _ = k.process.Kill() }

// Pid returns the process ID of the keeper.
func (k *Keeper) Pid() int { return k.process.Pid }

// Done returns a channel that is closed when the keeper has ended: after Close, or because it was
// killed. From then on leases expire as without a keeper; nothing else changes.
func (k *Keeper) Done() <-chan struct{} { return k.over }

// Err returns nil while the keeper runs and after Close, else how the keeper ended.
func (k *Keeper) Err() error {
	select {
	case <-k.over:
	default:
		return nil
	}
	if k.ended.Load() {
		return nil
	}
	return fmt.Errorf("the keeper has ended: %w", k.err)
}

// Close ends the keeper. It does not revoke the leases that are held: close their sessions first.
// It blocks until the keeper has ended, or ctx has: then it kills the keeper, and returns ctx's
// cause.
func (k *Keeper) Close(ctx context.Context) error {
	if k == nil {
		return nil
	}
	k.ended.Store(true)
	k.tell("end\n")
	k.mu.Lock()
	k.hangUp()
	k.mu.Unlock()
	err := retry.Wait(ctx, k.over)
	if err != nil {
		k.kill()
		<-k.over
	}
	return err
}
