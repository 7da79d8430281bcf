package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
)

// Lead serves requests with handler in the tenure l, those of callers and those that followers
// forward, until ctx or the tenure ends. Call it from the lead function of an elector, or from
// curator.Config.Background, with a handler made for this tenure. It blocks until no handler runs
// any more, and returns ctx's cause.
//
// If only ctx has ended and the tenure still holds, running requests have Config.Grace to end, in
// the tenure. Then their contexts end. After another Config.Grace, their reads from callers and
// writes to callers fail. Then Lead waits for handlers that ignore both. New requests wait for the
// next leader. Lead may be called before, during and after Run, for one tenure at a time; another
// call returns an error that wraps eldest.ErrInvalid.
func (f *Front) Lead(ctx context.Context, l *elector.Leadership, handler http.Handler) error {
	if ctx == nil || l == nil || handler == nil {
		return f.failed("lead", invalid("the context, the leadership or the handler is nil"))
	}
	certain := func() error {
		if !l.Holds(0) {
			return fmt.Errorf("%w: the deadline has passed", eldest.ErrSessionLost)
		}
		return nil
	}
	return f.failed("lead", f.lead(ctx, &tenure{Calls: routing.NewCalls(l.Context(), certain), Token: l.Token(), Service: handler}))
}

func (f *Front) lead(ctx context.Context, t *tenure) error {
	if err := f.router.Lead(t); err != nil {
		t.Cancel(err)
		return err
	}
	select {
	case <-ctx.Done():
	case <-t.Context().Done():
	}
	cause := context.Cause(ctx)
	if cause == nil {
		cause = t.Cause()
	}
	why := fmt.Errorf("node %+q no longer leads: %w", f.cfg.NodeID, cause)
	// First no new requests; then wait for those that run, while this node still leads; then the
	// end.
	t.Close(why)
	f.router.Leave(t, why)
	t.Drain(context.Background(), f.cfg.Grace)
	t.Finish(why)
	return cause
}

// errNotBegun is for a request that came too late for its tenure or its leader. It has not been
// sent anywhere.
var errNotBegun = errors.New("not begun")

// serve runs the handler of a tenure.
func (f *Front) serve(w http.ResponseWriter, r *http.Request, t *tenure) error {
	end, err := f.begin(w, t.Calls)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := handlerContext(t.Context(), r.Context())
	defer cancel()
	a := &answer{ResponseWriter: w, tenure: t.Context(), bare: r.Method == http.MethodHead}
	t.Service.ServeHTTP(a, r.WithContext(ctx))
	lost := t.Cause() // before the end: a tenure that is given up ends with its last request
	end()
	switch {
	case lost == nil, a.hijacked:
	case !a.begun:
		// A handler that returns because its context has ended has not done its work, and net/http
		// would answer 200.
		f.refuse(w, http.StatusBadGateway, false, fmt.Errorf("node %+q no longer leads: %w", f.cfg.NodeID, lost))
	case a.inTenure && a.open:
		panic(http.ErrAbortHandler) // the caller cannot detect whether it was the whole answer
	}
	return nil
}

// begin admits a request to calls that end together. When they end, the request's reads from the
// caller and writes to it fail after the grace. The returned function ends the request. After it no
// goroutine touches the connection; it panics if the connection cannot be used any more.
func (f *Front) begin(w http.ResponseWriter, calls *routing.Calls) (end func(), err error) {
	if err := calls.Begin(true); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotBegun, err)
	}
	var mu sync.Mutex
	var over, cut bool
	cutting := func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		cut = true
		past := time.Unix(1, 0)
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(past) // has no effect on a writer without deadlines
		_ = connection.SetWriteDeadline(past)
	}
	detach := context.AfterFunc(calls.Context(), func() { time.AfterFunc(f.cfg.Grace, cutting) })
	return sync.OnceFunc(func() {
		detach()
		calls.End(true)
		mu.Lock()
		defer mu.Unlock()
		over = true
		if cut {
			panic(http.ErrAbortHandler)
		}
	}), nil
}

// handlerContext returns the context of a handler. It is derived from the tenure's context, so that
// it has ended before another node can lead (G3), and has the values, the deadline and the end of
// the request's context.
func handlerContext(tenure, of context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(inTenure{Context: tenure, of: of})
	detach := context.AfterFunc(of, func() { cancel(context.Cause(of)) })
	return ctx, func() {
		detach()
		cancel(nil)
	}
}

// inTenure is a tenure's context with the values and the deadline of a request's context. Contexts
// that are derived from it end with the tenure.
type inTenure struct {
	context.Context
	of context.Context
}

// Value returns the tenure's value first, because package context finds its own values there.
func (c inTenure) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.of.Value(key)
}

// Deadline returns the deadline of the request. A tenure has none that is known in advance.
func (c inTenure) Deadline() (time.Time, bool) { return c.of.Deadline() }
