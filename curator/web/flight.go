package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/eldest-io/eldest/curator/internal/routing"
)

// flight is the requests that run in one tenure, or that were forwarded to one leader.
// They end together.
//
// Invariant: a request runs only between a begin that returned nil and its end, and no
// begin returns nil after close.
type flight struct {
	ctx    context.Context // its cause says why the requests were ended
	cancel context.CancelCauseFunc
	// certain reads the clock and returns why no request may begin, or nil.
	certain func() error

	mu      sync.Mutex
	closed  error
	running map[*request]struct{}
	ends    routing.Ends // of requests
}

// request is one that runs.
type request struct {
	w       http.ResponseWriter
	cut     bool           // its connection was ended; guarded by flight.mu
	cutting sync.WaitGroup // goroutines that are about to do that
}

func newFlight(ctx context.Context, certain func() error) *flight {
	f := &flight{certain: certain, running: make(map[*request]struct{})}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	return f
}

// over returns why no request may begin, or nil.
func (f *flight) over() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended()
}

func (f *flight) ended() error {
	if f.closed != nil {
		return f.closed
	}
	if err := context.Cause(f.ctx); err != nil {
		return err
	}
	return f.certain()
}

// begin admits a request, or returns why it may not run.
func (f *flight) begin(w http.ResponseWriter) (*request, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ended(); err != nil {
		return nil, err
	}
	q := &request{w: w}
	f.running[q] = struct{}{}
	return q, nil
}

// end reports whether the request's connection can still be used. After it nothing
// touches the connection.
func (f *flight) end(q *request) bool {
	defer q.cutting.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, q)
	f.ends.Tell()
	return !q.cut
}

// close admits no further request.
func (f *flight) close(reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed == nil {
		f.closed = reason
	}
}

// settle blocks until no request runs, or the limit has passed, or the requests' context ends.
func (f *flight) settle(limit time.Duration) {
	ctx, cancel := context.WithTimeout(f.ctx, limit)
	defer cancel()
	f.wait(ctx)
}

// finish ends the requests and blocks until all have returned: first their contexts end
// and then, after the grace, what they read from callers and write to them.
func (f *flight) finish(cause error, grace time.Duration) {
	f.close(cause)
	f.cancel(cause)
	patience, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if f.wait(patience) {
		return
	}
	for _, q := range f.cut() {
		past := time.Unix(1, 0)
		connection := http.NewResponseController(q.w)
		_ = connection.SetReadDeadline(past) // a writer that has none cannot be cut
		_ = connection.SetWriteDeadline(past)
		q.cutting.Done()
	}
	f.wait(context.Background())
}

// cut returns the requests that run. None of them ends before its cutting is done.
func (f *flight) cut() []*request {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*request
	for q := range f.running {
		q.cut = true
		q.cutting.Add(1)
		all = append(all, q)
	}
	return all
}

// wait blocks until no request runs (true) or ctx ends (false).
func (f *flight) wait(ctx context.Context) bool {
	return f.ends.Wait(ctx, &f.mu, func() bool { return len(f.running) == 0 })
}
