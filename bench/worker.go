package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"sync"
	"time"
)

// Work hosts sessions, candidates and observers for a run in another process, with one
// client of the site. It is what a process started by Site.Spawn runs: calls come in and
// answers go out as JSON-RPC 1.0 (net/rpc/jsonrpc), and nothing else may be written to out.
//
// For contenders that have a keeper (package keeper), contender.KeeperWith is set.
//
// Work blocks until in ends (nil), in is not what it should be, or ctx ends (its
// cause). Then calls that are under way are cancelled, and what is still open is
// closed, which takes ten seconds at most. After the end of ctx a goroutine stays
// behind that reads from in, for as long as that blocks.
func Work(ctx context.Context, site Site, in io.Reader, out io.Writer) error {
	host, err := newLocal(site)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	w := &worker{ctx: ctx, host: host, calls: map[int64]context.CancelFunc{}, things: map[int64]any{}}
	server := rpc.NewServer()
	if err := server.RegisterName(service, w); err != nil {
		panic(err) // none of its methods can be called
	}
	go server.ServeCodec(calls{jsonrpc.NewServerCodec(pipe{in, out, io.NopCloser(in)}), w, end})
	<-ctx.Done()
	w.close()
	if err := context.Cause(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// service is the first part of the methods' names.
const service = "worker"

// workCall is one call of a worker's method. The type has no name because net/rpc takes no
// arguments of an unexported type that has one.
type workCall = struct {
	// ID is the call's number, which the parent gives. Of is the number of the call that
	// made the session, candidate or crowd that this call is about; or that is cancelled.
	ID, Of                          int64
	Contender, Election, Key, Value string
	TTL                             time.Duration
	Size                            CrowdSize
	By                              int
	Cut                             bool

	ctx context.Context // on the worker's side: ends with the call, or when it is cancelled
}

// workAnswer is what a method returns beside its error. Times are wall-clock times of the
// worker.
type workAnswer = struct {
	At   time.Time
	Seen Seen
	Key  string
	// Tells says whether the candidate will tell of its loss at all.
	Tells bool
	Wire  Wire

	of int64 // on the parent's side: the number of the call, for calls about what it made
}

// pipe joins the two ends of a connection.
type pipe struct {
	io.Reader
	io.Writer
	io.Closer
}

// calls reads calls one after another: each has its context before the request to cancel
// it is read.
type calls struct {
	rpc.ServerCodec
	worker *worker
	ended  context.CancelCauseFunc // ends the worker
}

// ReadRequestHeader ends the worker where nothing more can be read.
func (c calls) ReadRequestHeader(r *rpc.Request) error {
	err := c.ServerCodec.ReadRequestHeader(r)
	if err != nil {
		c.ended(err)
	}
	return err
}

// ReadRequestBody gives the call its context.
func (c calls) ReadRequestBody(body any) error {
	err := c.ServerCodec.ReadRequestBody(body)
	if call, ok := body.(*workCall); ok && err == nil {
		err = c.worker.begin(call)
	}
	return err
}

// WriteResponse keeps errors back once the worker ends: its end says more than that it
// cancelled the call.
func (c calls) WriteResponse(r *rpc.Response, body any) error {
	if r.Error != "" && c.worker.ctx.Err() != nil {
		return nil //nolint:nilerr // the end of the worker is no error of this answer
	}
	return c.ServerCodec.WriteResponse(r, body)
}

// worker is the state of Work. Its exported methods are what the parent calls.
type worker struct {
	ctx     context.Context // the worker's life
	host    Host
	running sync.WaitGroup // calls; none is added once ctx has ended and mu was free

	mu sync.Mutex
	// calls are those under way, things the hosted sessions, candidates and crowds, by
	// the number of the call that made them.
	calls  map[int64]context.CancelFunc
	things map[int64]any
}

// hosted is a session and the candidates on it, which are forgotten when it is closed.
type hosted struct {
	Session
	candidates []int64
}

// begin gives a call its context, unless the worker ends. The method calls done.
func (w *worker) begin(call *workCall) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	call.ctx, w.calls[call.ID] = context.WithCancel(w.ctx)
	w.running.Add(1)
	return nil
}

func (w *worker) done(call workCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[call.ID]()
	delete(w.calls, call.ID)
	w.running.Done()
}

// keep names what a call has made by its number.
func (w *worker) keep(call workCall, thing any, err error) error {
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.things[call.ID] = thing
	return nil
}

// about carries a call out on what it is about.
func about[T any](w *worker, call workCall, do func(T) error) error {
	defer w.done(call)
	w.mu.Lock()
	t, ok := w.things[call.Of].(T)
	w.mu.Unlock()
	if !ok {
		return fmt.Errorf("call %d of the worker has made nothing of this kind", call.Of)
	}
	return do(t)
}

// close waits for the calls, whose contexts have ended, and closes what the parent
// left open: if it died, nobody else will.
func (w *worker) close() {
	_ = w.host.Cut(context.Background(), false) // or nothing could be closed
	w.mu.Lock()
	w.mu.Unlock() //nolint:staticcheck // no call begins from here on
	w.running.Wait()
	last, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	var closing sync.WaitGroup
	atATime := make(chan struct{}, placing)
	for _, open := range w.things {
		atATime <- struct{}{}
		closing.Go(func() {
			defer func() { <-atATime }()
			_ = closeThing(last, open) // at the latest its lease runs out
		})
	}
	closing.Wait()
	_ = w.host.Close()
}
