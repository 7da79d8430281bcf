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

// Keeper is this process's side of its keeper. Made by Start, ended by Close. All methods are
// safe for concurrent use. A nil *Keeper is none: Hold and Drop do nothing.
type Keeper struct {
	process *os.Process

	mu     sync.Mutex
	orders *os.File // nil once nothing more can be told

	over chan struct{} // closed when the keeper has ended
	err  error         // how; valid once over is closed
	// ended says that Close has told it to.
	ended atomic.Bool
}

// variable is how a process knows that it is the keeper of the one with this ID.
const variable = "ELDEST_KEEPER_OF"

// served says that Serve was called: a process that was started again would come by it.
var served atomic.Bool

// Serve has to be called by main before Start, and before anything that only one process is to
// do: first of all. In the keeper it does that one's work with the client that dial makes, and
// never returns. In all other processes it returns at once. The keeper has the same arguments and
// environment; stdin and stdout are /dev/null.
//
// dial is given what Start was given: how to reach etcd, say, in a form of the program's own. It is
// called once at a time, until it succeeds, and may return before there is a connection.
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

// mostWith is how much Start takes for dial.
const mostWith = 1 << 20

// patience is how long Start waits for the keeper to begin.
const patience = 30 * time.Second

// Start starts the keeper, and blocks until it watches this process, ctx ends, or half a minute
// has passed. Whether it reaches etcd is not waited for. with is for dial (see Serve): at most a
// megabyte, which no other process sees. Errors: eldest.ErrInvalid where Serve was
// not called before; errors.ErrUnsupported on a system without pidfd; what the system says where
// the process cannot be started. On an error nothing is left running. Close it
// before the process becomes another program (exec).
func Start(ctx context.Context, with []byte) (*Keeper, error) {
	if !served.Load() {
		return nil, fmt.Errorf("start keeper: %w: call keeper.Serve first in main", eldest.ErrInvalid)
	}
	if len(with) > mostWith {
		return nil, fmt.Errorf("start keeper: %w: %d bytes for dial, of %d", eldest.ErrInvalid, len(with), mostWith)
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
		return nil, fmt.Errorf("start keeper: it does not begin: %w", err)
	}
	return k, nil
}

// Hold has a lease revoked when this process has died; where etcd cannot be reached, it is tried
// for the lease's TTL, after which it has expired. It does not block. Sessions call it, if
// lease.Config.Keeper is set.
func (k *Keeper) Hold(id clientv3.LeaseID, ttl time.Duration) { k.tell("hold %x %d\n", id, ttl) }

// Drop takes Hold back. The lease is this process's to revoke, or to leave to another one.
func (k *Keeper) Drop(id clientv3.LeaseID) { k.tell("drop %x\n", id) }

// tell writes an order. A keeper that does not read what fills a pipe would know wrong things,
// and is worth nothing: it is killed.
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

// hangUp ends the orders. The caller holds mu.
func (k *Keeper) hangUp() {
	if k.orders != nil {
		_ = k.orders.Close()
		k.orders = nil
	}
}

func (k *Keeper) kill() { _ = k.process.Kill() }

// Pid returns the process ID of the keeper.
func (k *Keeper) Pid() int { return k.process.Pid }

// Done returns a channel that is closed when the keeper has ended: after Close, or because
// somebody has killed it. From then on leases expire as if there never had been one; nothing
// else changes.
func (k *Keeper) Done() <-chan struct{} { return k.over }

// Err returns nil while the keeper runs and after Close, else how it ended.
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

// Close ends the keeper. Leases that were held are left alone: close their sessions before. It
// blocks until the keeper has ended, or ctx has: then the keeper is killed, and Close returns ctx's
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
