package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/eldest-io/eldest/bench/contender"
)

// Work hosts sessions, candidates and observers for a run in another process, with one
// client of the site. It is what a process started by Site.Spawn runs: calls come in as
// lines of JSON, answers go out as such, and nothing else may be written to out.
//
// Work blocks until in ends (nil), in is not what it should be, or ctx ends (its
// cause). Then calls that are under way are broken off, and what is still open is
// closed, which takes ten seconds at most. After the end of ctx a goroutine stays
// behind that reads from in, for as long as that blocks.
func Work(ctx context.Context, site Site, in io.Reader, out io.Writer) error {
	host, err := newLocal(site)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{
		host: host, out: json.NewEncoder(out),
		calls: map[int64]context.CancelFunc{}, things: map[int64]any{},
	}
	defer w.close()
	defer cancel()
	calls, ended := readCalls(ctx, in)
	for {
		select {
		case call := <-calls:
			w.take(ctx, call)
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readCalls reads until in or ctx ends, and then says why.
func readCalls(ctx context.Context, in io.Reader) (<-chan workCall, <-chan error) {
	calls, ended := make(chan workCall), make(chan error, 1)
	go func() {
		for lines := json.NewDecoder(in); ; {
			var call workCall
			if err := lines.Decode(&call); err != nil {
				ended <- err
				return
			}
			select {
			case calls <- call:
			case <-ctx.Done():
				return
			}
		}
	}()
	return calls, ended
}

// worker is the state of Work.
type worker struct {
	host    Host
	running sync.WaitGroup

	mu sync.Mutex
	// calls are those under way, things what answers have named: hosted sessions,
	// candidates and crowds.
	calls  map[int64]context.CancelFunc
	things map[int64]any
	named  int64

	tell sync.Mutex // held while a line is written
	out  *json.Encoder
}

// hosted is a session and the candidates on it, which go when it is closed.
type hosted struct {
	contender.Session
	candidates []int64
}

// take begins a call, or breaks one off.
func (w *worker) take(ctx context.Context, call workCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if call.Op == opCancel {
		if cancel := w.calls[call.Of]; cancel != nil {
			cancel()
		}
		return
	}
	life := ctx
	ctx, cancel := context.WithCancel(life)
	w.calls[call.ID] = cancel
	w.running.Go(func() {
		answer, err := w.do(ctx, call)
		cancel()
		w.mu.Lock()
		delete(w.calls, call.ID)
		w.mu.Unlock()
		if err != nil && life.Err() != nil {
			return // the worker's end says more than that it broke the call off
		}
		answer.ID = call.ID
		w.tell.Lock()
		defer w.tell.Unlock()
		_ = w.out.Encode(answer.failed(err)) // a parent that is gone ends in as well
	})
}

// name keeps a thing and returns what the parent calls it from now on.
func (w *worker) name(thing any) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.named++
	w.things[w.named] = thing
	return w.named
}

// thing returns what was named.
func thing[T any](w *worker, of int64) (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.things[of].(T)
	if !ok {
		return t, fmt.Errorf("the worker has no %T under number %d", *new(T), of)
	}
	return t, nil
}

// forget gives up what was named, so that a long run does not fill the worker.
func (w *worker) forget(of int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.things[of].(*hosted); ok {
		for _, c := range s.candidates {
			delete(w.things, c)
		}
	}
	delete(w.things, of)
}

// close waits for the calls, whose contexts have ended, and closes what the parent
// left open: if it died, nobody else will.
func (w *worker) close() {
	_ = w.host.Cut(context.Background(), false) // or nothing could be closed
	w.running.Wait()
	last, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	var closing sync.WaitGroup
	atATime := make(chan struct{}, placing)
	for _, open := range w.things {
		atATime <- struct{}{}
		closing.Go(func() {
			defer func() { <-atATime }()
			switch open := open.(type) {
			case *hosted:
				_ = open.Close(last) // at the latest its lease runs out
			case Crowd:
				open.Close(last)
			}
		})
	}
	closing.Wait()
	_ = w.host.Close()
}
