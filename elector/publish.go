package elector

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/internal/latest"
)

// published is a status with what it rests on.
type published struct {
	status Status
	// over reads the clock and returns why the status does not hold any more, or
	// nil; nil for one that rests on nothing.
	over func() error
}

// now returns the status as it is at this moment: after the process was stopped past
// the deadline the first look must not show a leader, before any timer has fired.
func (p published) now() Status {
	if p.over != nil {
		if err := p.over(); err != nil {
			return unknown(err).at(time.Now())
		}
	}
	return p.status
}

// Status returns what this node is now. It reads the clock, sends nothing and never
// blocks: a tenure, or a place in the queue, past its deadline is neither already.
func (e *Elector) Status() Status {
	p, _ := e.cell.Get() // there is one from New on
	return p.now()
}

// Watch returns a watch of the status that has seen nothing yet. It needs no goroutine
// and no clean-up.
func (e *Elector) Watch() *Watch { return &Watch{e: e, reader: e.cell.Reader()} }

// Watch reads an elector's statuses. It is for one goroutine at a time; many watches
// of one elector are independent, and a slow one holds up nobody.
type Watch struct {
	e      *Elector
	reader *latest.Reader[published]
}

// Next returns the newest status if this watch has not returned it yet, else it blocks
// for a newer one; the first call returns the present one. Statuses that came and went
// in between are skipped. It ends with ctx: its cause; nothing is lost, and Next may be
// called again. The end of Run is a status like others, and does not end a watch.
func (w *Watch) Next(ctx context.Context) (Status, error) {
	return w.NextWhere(ctx, func(Status) bool { return true })
}

// NextWhere is Next for statuses that want accepts; others are skipped. want holds up
// nobody but this watch.
func (w *Watch) NextWhere(ctx context.Context, want func(Status) bool) (s Status, err error) {
	if ctx == nil || want == nil {
		return Status{}, w.e.failed("status", invalid("the context or the condition is nil"))
	}
	_, err = w.reader.NextWhere(ctx, func(p published) bool {
		s = p.now()
		return want(s)
	})
	if err != nil {
		return Status{}, err
	}
	return s, nil
}

// publish makes a status the newest, unless it says what the last one did.
func (e *Elector) publish(s Status, over func() error) {
	before, _ := e.cell.Get()
	if s.role != Unknown && s.same(before.status) {
		return
	}
	e.cell.Set(published{status: s.at(time.Now()), over: over})
	e.log(func() {
		e.cfg.Logger.Info("election status", "election", e.cfg.Election, "node", e.cfg.NodeID, "instance", e.instance, "status", s)
	})
}

// log hands a line to the logger, which is not ours: it may be slow.
func (e *Elector) log(line func()) { e.logs.Do(line) }

// flush waits for the logger, for a while.
func (e *Elector) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.logs.Wait(ctx)
}
