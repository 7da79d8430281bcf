package traces

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
)

// scope is the name of this package in the spans.
const scope = "github.com/eldest-io/eldest/traces"

// Hooks returns hooks that make spans of the campaigns and tenures in an election, with provider.
// They return as soon as provider's spans do. The hooks are for one participant at a time, which
// may have any number of candidates, one after another.
func Hooks(provider trace.TracerProvider, election string) hooks.Set {
	w := &writer{tracer: provider.Tracer(scope), election: election, open: make(map[eldest.Token]*open)}
	return hooks.Set{Session: w.session(), Candidate: w.candidate()}
}

// writer keeps the spans that have not ended.
type writer struct {
	tracer   trace.Tracer
	election string

	mu   sync.Mutex
	open map[eldest.Token]*open
}

// open is a candidacy whose last span has not ended.
type open struct {
	ctx  context.Context //nolint:containedctx // that of the first span, for its child
	span trace.Span
}

// forgotten is how many spans may be open at once. A participant has one, and for a moment two; any
// others are spans whose end was not reported because another hook blocked.
const forgotten = 8

func (w *writer) candidate() election.Hooks {
	return election.Hooks{
		Registered: func(e election.RegisteredEvent) {
			attrs := append(w.about(e.Key, e.Token), attribute.Int64("eldest.queue", e.Queue), attribute.Bool("eldest.adopted", e.Adopted))
			if e.Predecessor != "" {
				attrs = append(attrs, attribute.String("eldest.predecessor", e.Predecessor))
			}
			ctx, span := w.tracer.Start(context.Background(), "eldest.campaign",
				trace.WithTimestamp(e.At), trace.WithNewRoot(), trace.WithAttributes(attrs...))
			span.AddEvent("registered", trace.WithTimestamp(e.At))
			w.mu.Lock()
			defer w.mu.Unlock()
			w.end(e.Token, errForgotten, time.Now())
			w.forget()
			w.open[e.Token] = &open{ctx: ctx, span: span}
		},
		Waiting: func(e election.WaitingEvent) {
			w.tell(e.Token, "waiting", e.At, attribute.String("eldest.predecessor", e.Predecessor.Key))
		},
		Won: func(e election.WonEvent) {
			if e.Resumed {
				w.tell(e.Token, "resumed", e.At, attribute.Int64("eldest.revision", e.Revision))
				return
			}
			w.tell(e.Token, "won", e.At, attribute.Int64("eldest.revision", e.Revision),
				attribute.Float64("eldest.waited_seconds", e.Waited.Seconds()), attribute.Float64("eldest.proof_seconds", e.Proof.Seconds()))
			w.mu.Lock()
			defer w.mu.Unlock()
			o := w.open[e.Token]
			if o == nil {
				return // the call for its beginning was dropped
			}
			o.span.End(trace.WithTimestamp(e.At))
			_, o.span = w.tracer.Start(o.ctx, "eldest.tenure", trace.WithTimestamp(e.At), trace.WithAttributes(w.about(e.Key, e.Token)...))
		},
		Suspended: func(e election.SuspendedEvent) {
			w.tell(e.Token, "suspended", e.At, attribute.String("eldest.error", e.Cause.Error()))
		},
		Evicted: func(e election.EvictedEvent) {
			w.tellAll("predecessor evicted", e.At, attribute.String("eldest.predecessor", e.Evicted.Key), attribute.Float64("eldest.silence_seconds", e.Silence.Seconds()))
		},
		Ended: func(e election.EndedEvent) {
			cause, at := e.Cause, e.At
			if !e.Drained.IsZero() {
				cause, at = eldest.ErrDraining, e.Drained // the end of the leading context, whatever happened to the key
			}
			w.tell(e.Token, "ended", at, attribute.String("eldest.cause", hooks.Cause(cause)), attribute.String("eldest.error", e.Cause.Error()))
			w.mu.Lock()
			defer w.mu.Unlock()
			w.end(e.Token, cause, at)
		},
		Interrupted: func(e election.InterruptedEvent) {
			w.tellAll("watch interrupted", e.At, attribute.String("eldest.watched", e.Key),
				attribute.String("eldest.cause", hooks.Trouble(e.Reason)), attribute.String("eldest.error", e.Reason.Error()))
		},
	}
}

// session returns hooks that write risks of the lease into the open spans.
func (w *writer) session() lease.Hooks {
	return lease.Hooks{
		AtRisk: func(e lease.AtRiskEvent) {
			w.tellAll("lease at risk", time.Now(), attribute.Float64("eldest.remaining_seconds", e.Remaining.Seconds()),
				attribute.String("eldest.cause", hooks.Trouble(e.Err)), attribute.String("eldest.error", e.Err.Error()))
		},
		Recovered: func(e lease.RenewedEvent) {
			w.tellAll("lease recovered", time.Now(), attribute.Float64("eldest.slack_seconds", e.Slack.Seconds()))
		},
	}
}

func (w *writer) about(key string, token eldest.Token) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("eldest.election", w.election), attribute.String("eldest.key", key), attribute.Int64("eldest.token", int64(token)),
	}
}

func (w *writer) tell(of eldest.Token, what string, at time.Time, attrs ...attribute.KeyValue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.open[of]; o != nil {
		o.span.AddEvent(what, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
	}
}

func (w *writer) tellAll(what string, at time.Time, attrs ...attribute.KeyValue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.open {
		o.span.AddEvent(what, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
	}
}

// end ends the span of a candidacy. The caller holds mu.
func (w *writer) end(token eldest.Token, cause error, at time.Time) {
	o := w.open[token]
	if o == nil {
		return
	}
	delete(w.open, token)
	switch {
	case errors.Is(cause, errForgotten):
		o.span.SetStatus(codes.Error, cause.Error())
	case !hooks.Asked(cause):
		o.span.SetStatus(codes.Error, hooks.Cause(cause))
	}
	o.span.End(trace.WithTimestamp(at))
}

// forget ends the oldest of too many spans. The caller holds mu.
func (w *writer) forget() {
	tokens := slices.Sorted(maps.Keys(w.open))
	for len(tokens) >= forgotten {
		w.end(tokens[0], errForgotten, time.Now())
		tokens = tokens[1:]
	}
}

var errForgotten = errors.New("its end was not reported: a hook blocked")
