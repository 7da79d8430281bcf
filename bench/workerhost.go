package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// errWorkerGone is returned for calls to a worker that has ended.
var errWorkerGone = errors.New("the worker has ended")

// worker returns a new worker, which ends with the run.
func (r *run) worker(ctx context.Context) (Host, error) {
	h, err := spawn(ctx, r.site)
	if err != nil {
		return nil, err
	}
	r.adopt(h)
	return h, nil
}

// remote is a host in another process, seen from this one.
//
// The caller's context ends a call on both sides: here at once, there as soon as the
// worker hears of it. What the worker answers then is not waited for.
type remote struct {
	process *Spawned
	client  *rpc.Client
	last    atomic.Int64  // the number of the last call
	gone    chan struct{} // closed when nothing more comes from the worker
	once    sync.Once     // closes gone
	cause   error         // why it ended, if it did so by itself; valid once gone is closed
}

// spawn starts a worker, which the caller must Close.
func spawn(ctx context.Context, site Site) (*remote, error) {
	if site.Spawn == nil {
		return nil, fmt.Errorf("starting a worker: %w", errors.ErrUnsupported)
	}
	p, err := site.Spawn(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	r := &remote{process: p, gone: make(chan struct{})}
	r.client = rpc.NewClientWithCodec(answers{jsonrpc.NewClientCodec(pipe{p.Out, p.In, p.In}), r})
	return r, nil
}

// answers notes when the worker ends. A killed one may leave half a line.
type answers struct {
	rpc.ClientCodec
	remote *remote
}

// ReadResponseHeader reads the next answer's.
func (a answers) ReadResponseHeader(r *rpc.Response) error {
	err := a.ClientCodec.ReadResponseHeader(r)
	if err != nil {
		a.remote.end(err)
	}
	return err
}

func (r *remote) end(cause error) {
	r.once.Do(func() {
		if !errors.Is(cause, io.EOF) {
			r.cause = cause
		}
		close(r.gone)
	})
}

// ended reports whether the worker has.
func (r *remote) ended() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// over is what calls to a worker that has ended return.
func (r *remote) over() error {
	if r.cause == nil {
		return errWorkerGone
	}
	return fmt.Errorf("%w: %w", errWorkerGone, r.cause)
}

// begin sends a call.
func (r *remote) begin(method string, call workCall) *rpc.Call {
	call.ID = r.last.Add(1)
	return r.client.Go(service+"."+method, call, &workAnswer{of: call.ID}, nil)
}

// call blocks until the worker has answered, has ended, or ctx has.
func (r *remote) call(ctx context.Context, method string, call workCall) (workAnswer, error) {
	if ctx.Err() != nil {
		return workAnswer{}, context.Cause(ctx)
	}
	sent := r.begin(method, call)
	select {
	case <-sent.Done:
		if err := r.failed(sent.Error); err != nil {
			return workAnswer{}, err
		}
		return *sent.Reply.(*workAnswer), nil
	case <-r.gone:
		return workAnswer{}, r.over()
	case <-ctx.Done():
		r.begin("Cancel", workCall{Of: sent.Args.(workCall).ID})
		return workAnswer{}, context.Cause(ctx)
	}
}

// failed makes an error of what a call failed with. The worker's own errors come as texts;
// errors.ErrUnsupported is the one that scenarios tell from the others.
func (r *remote) failed(err error) error {
	var said rpc.ServerError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &said):
		// It has ended, or is about to, and its last words say more than a pipe's.
		select {
		case <-r.gone:
			return r.over()
		case <-time.After(time.Second):
			return fmt.Errorf("%w: %w", errWorkerGone, err)
		}
	}
	if text, ok := strings.CutSuffix(said.Error(), errors.ErrUnsupported.Error()); ok {
		return fmt.Errorf("%s%w", text, errors.ErrUnsupported)
	}
	return said
}

// Open opens a session there.
func (r *remote) Open(ctx context.Context, name string, ttl time.Duration) (Session, error) {
	answer, err := r.call(ctx, "Open", workCall{Contender: name, TTL: ttl})
	if err != nil {
		return nil, err
	}
	return &remoteSession{host: r, ref: answer.of}, nil
}

// Observe gathers a crowd there.
func (r *remote) Observe(ctx context.Context, name, election string, size CrowdSize) (Crowd, error) {
	answer, err := r.call(ctx, "Observe", workCall{Contender: name, Election: election, Size: size})
	if err != nil {
		return nil, err
	}
	return &remoteCrowd{host: r, ref: answer.of}, nil
}

// Wire is what the worker's client has counted.
func (r *remote) Wire(ctx context.Context) (Wire, error) {
	answer, err := r.call(ctx, "Wire", workCall{})
	return answer.Wire, err
}

// Shift moves the worker's client on.
func (r *remote) Shift(ctx context.Context, by int) error {
	_, err := r.call(ctx, "Shift", workCall{By: by})
	return err
}

// Cut cuts the worker's client off, not the worker from this process.
func (r *remote) Cut(ctx context.Context, cut bool) error {
	_, err := r.call(ctx, "Cut", workCall{Cut: cut})
	return err
}

// Kill ends the worker where it stands. Calls that are under way fail.
func (r *remote) Kill() error {
	r.end(nil) // first: how the reading ends now is of no interest
	return r.process.Kill()
}

// Close ends the worker in good order, or kills it if it takes too long.
func (r *remote) Close() error {
	_ = r.client.Close() // it may be gone
	select {
	case <-r.gone:
	case <-time.After(2 * farewell):
	}
	return r.Kill()
}
