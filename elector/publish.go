package elector

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/eldest-io/eldest/internal/latest"
	"github.com/eldest-io/eldest/internal/serial"
)

// published is a status with the condition under which it holds.
type published struct {
	status Status
	// over reads the clock and returns why the status does not hold any more, or nil. It is nil for
	// a status without a condition.
	over func() error
}

// now returns the status at this moment. In a process that was stopped past the deadline the first
// call must not return Leading, even though no timer has fired yet.
func (p published) now() Status {
	if p.over != nil {
		if err := p.over(); err != nil {
			return unknown(err).at(time.Now())
		}
	}
	return p.status
}

// Status returns what this node is now. It reads the clock, sends nothing and never blocks. If a
// tenure or a position in the queue is past its deadline, the status is already Unknown.
func (e *Elector) Status() Status {
	p, _ := e.cell.Get() // New sets the first one
	return p.now()
}

// Watch returns a watch whose first Next returns the present status. It needs no goroutine and no
// clean-up.
func (e *Elector) Watch() *Watch { return &Watch{e: e, reader: e.cell.Reader()} }

// Watch reads an elector's statuses. It is for one goroutine at a time. Many watches of one elector
// are independent: a slow one does not delay the others.
type Watch struct {
	e      *Elector
	reader *latest.Reader[published]
}

// Next returns the newest status if this watch has not returned it yet; otherwise it blocks for a
// newer one. The first call returns the present status. Statuses that were replaced in between are
// skipped. When ctx ends, Next returns its cause; nothing is lost, and Next may be called again.
// The end of Run is a status like others and does not end a watch.
func (w *Watch) Next(ctx context.Context) (Status, error) {
	return w.NextWhere(ctx, func(Status) bool { return true })
}

// NextWhere is Next for statuses that want accepts; others are skipped. A slow want delays only
// this watch.
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

// publish makes s the newest status, unless it equals the last one.
func (e *Elector) publish(s Status, over func() error) {
	before, _ := e.cell.Get()
	if s.role != Unknown && s.same(before.status) {
		return
	}
	e.cell.Set(published{status: s.at(time.Now()), over: over})
	e.log.line(slog.LevelInfo, "election status", "instance", e.instance, "status", s)
}

// log writes lines off the caller's goroutine, because the user's logger may be slow.
type log struct {
	queue serial.Queue
	to    *slog.Logger
	attrs []any // of each line
}

func (l *log) line(level slog.Level, line string, attrs ...any) {
	l.queue.Do(func() { l.to.Log(context.Background(), level, line, slices.Concat(l.attrs, attrs)...) })
}

func (l *log) warn(line string, attrs ...any) { l.line(slog.LevelWarn, line, attrs...) }

// late logs the result of a lead function that nobody else is told, because its context had ended, unless
// it only repeats why.
func (l *log) late(result, cause error, attrs ...any) {
	if result != nil && !errors.Is(result, cause) && !errors.Is(result, context.Canceled) {
		l.warn("lead function returned an error after its context had ended", append(attrs, "error", result)...)
	}
}

// flush waits for the logger for at most one second.
func (l *log) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.queue.Wait(ctx)
}
