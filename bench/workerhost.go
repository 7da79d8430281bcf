package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
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
	gone    chan struct{} // closed when nothing more comes from the worker
	once    sync.Once     // closes gone
	cause   error         // why it ended, if it did so by itself; valid once gone is closed

	mu      sync.Mutex
	last    int64 // call
	waiting map[int64]chan<- workAnswer

	tell sync.Mutex // held while a line is written
	in   *json.Encoder
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
	r := &remote{
		process: p, gone: make(chan struct{}), in: json.NewEncoder(p.In),
		waiting: map[int64]chan<- workAnswer{},
	}
	go r.listen()
	return r, nil
}

// listen hands out answers until the worker ends. A killed one may leave half a line.
func (r *remote) listen() {
	for lines := json.NewDecoder(r.process.Out); ; {
		var answer workAnswer
		if err := lines.Decode(&answer); err != nil {
			r.end(err)
			return
		}
		r.mu.Lock()
		waiting := r.waiting[answer.ID]
		delete(r.waiting, answer.ID)
		r.mu.Unlock()
		if waiting != nil {
			waiting <- answer
		}
	}
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

// begin sends a call and returns where its answer comes.
func (r *remote) begin(call workCall) (id int64, answer <-chan workAnswer, err error) {
	c := make(chan workAnswer, 1)
	r.mu.Lock()
	r.last++
	call.ID = r.last
	r.waiting[call.ID] = c
	r.mu.Unlock()
	return call.ID, c, r.send(call)
}

func (r *remote) send(call workCall) error {
	r.tell.Lock()
	defer r.tell.Unlock()
	if err := r.in.Encode(call); err != nil {
		return fmt.Errorf("%w: %w", errWorkerGone, err)
	}
	return nil
}

// call blocks until the worker has answered, has ended, or ctx has.
func (r *remote) call(ctx context.Context, call workCall) (workAnswer, error) {
	if ctx.Err() != nil {
		return workAnswer{}, context.Cause(ctx)
	}
	id, answer, err := r.begin(call)
	if err != nil {
		r.drop(id)
		// It has ended, or is about to, and its last words say more than a pipe's.
		select {
		case <-r.gone:
			return workAnswer{}, r.over()
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return workAnswer{}, err
	}
	select {
	case a := <-answer:
		return a, a.err()
	case <-r.gone:
		return workAnswer{}, r.over()
	case <-ctx.Done():
		r.drop(id)
		_ = r.send(workCall{Op: opCancel, Of: id})
		return workAnswer{}, context.Cause(ctx)
	}
}

func (r *remote) drop(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, id)
}

// Open opens a session there.
func (r *remote) Open(ctx context.Context, name string, ttl time.Duration) (contender.Session, error) {
	a, err := r.call(ctx, workCall{Op: opOpen, Contender: name, TTL: ttl})
	if err != nil {
		return nil, err
	}
	return &remoteSession{host: r, ref: a.Ref}, nil
}

// Observe gathers a crowd there.
func (r *remote) Observe(ctx context.Context, name, election string, size CrowdSize) (Crowd, error) {
	a, err := r.call(ctx, workCall{Op: opObserve, Contender: name, Election: election, Size: &size})
	if err != nil {
		return nil, err
	}
	return &remoteCrowd{host: r, ref: a.Ref}, nil
}

// Wire is what the worker's client has counted.
func (r *remote) Wire(ctx context.Context) (Wire, error) {
	a, err := r.call(ctx, workCall{Op: opWire})
	if err != nil || a.Wire == nil {
		return Wire{}, err
	}
	return *a.Wire, nil
}

// Shift moves the worker's client on.
func (r *remote) Shift(ctx context.Context, by int) error {
	_, err := r.call(ctx, workCall{Op: opShift, By: by})
	return err
}

// Cut cuts the worker's client off, not the worker from this process.
func (r *remote) Cut(ctx context.Context, cut bool) error {
	_, err := r.call(ctx, workCall{Op: opCut, Cut: cut})
	return err
}

// Kill ends the worker where it stands. Calls that are under way fail.
func (r *remote) Kill() error {
	r.end(nil) // first: how the reading ends now is of no interest
	return r.process.Kill()
}

// Close ends the worker in good order, or kills it if it takes too long.
func (r *remote) Close() error {
	_ = r.process.In.Close() // it may be gone
	select {
	case <-r.gone:
	case <-time.After(2 * farewell):
	}
	return r.Kill()
}
