package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/crew"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/truth"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// ErrUnsupported is returned for a fault that the contender offers no way to inject.
var ErrUnsupported = errors.New("the contender has nothing that this fault could be done to")

// Field is where faults are struck.
type Field struct {
	*inject.Field
	Crew  *crew.Crew
	Truth *truth.Recorder
	Log   *oracle.Recorder
	// Election is its name, Data the key that leaders write.
	Election, Data string
	Contender      string
	// Patience bounds how long a fault may take to show its effect.
	Patience time.Duration
	Clock    instant.Clock

	mu      sync.Mutex
	resumed []time.Duration
}

// Resumed returns the instants from which on a member that had been stopped while it led
// etcd went on. Such a one may revoke leases by its own old count, whoever has renewed them
// elsewhere meanwhile (docs/decisions/0016): what goes then was taken away by etcd.
func (f *Field) Resumed() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.resumed)
}

// Injury is a fault that was struck.
type Injury struct {
	// Text says on whom it was struck.
	Text string
	// Heal ends it and blocks until it is over, or ctx ends. After an error it may be
	// called again. nil: there is nothing to heal.
	Heal func(ctx context.Context) error
}

// striker injects a fault and blocks until its effect was seen or ctx ends. It returns the
// injury, if there is any, also beside an error: it must be healed.
type striker func(ctx context.Context, f *Field, s plan.Strike) (*Injury, error)

// strikers is filled by the files of the families.
var strikers = map[plan.Fault]striker{}

// Strike injects a fault and blocks until it has taken effect, for as long as the field's
// patience lasts, or ctx ends. The injury, if not nil, must be healed also after an error.
func Strike(ctx context.Context, f *Field, s plan.Strike) (*Injury, error) {
	strike, ok := strikers[s.Fault]
	if !ok {
		return nil, fmt.Errorf("no fault %q", s.Fault)
	}
	ctx, cancel := context.WithTimeout(ctx, f.Patience)
	defer cancel()
	inj, err := strike(ctx, f, s)
	if err != nil {
		return inj, fmt.Errorf("%s: %w", s, err)
	}
	return inj, f.Log.Add(oracle.Event{Kind: oracle.Struck, Text: string(s.Fault)})
}

// pick finds a participant that has the role. It blocks until there is one, or ctx ends.
func (f *Field) pick(ctx context.Context, s plan.Strike) (*crew.Member, error) {
	for {
		changed := f.Crew.Changed()
		var fit []*crew.Member
		for _, m := range f.Crew.Members {
			standing := m.Stands().Standing
			switch {
			case !m.Alive():
			case s.Fault == plan.Skew && m.Tight: // nothing there covers it
			case s.Fault == plan.Skew && s.On == plan.Leader && f.tightLeads():
				fit = append(fit, m) // who will lead is as good
			case s.On == plan.Leader && standing != actor.Leading:
			case s.On == plan.Waiter && standing != actor.Waiting:
			default:
				fit = append(fit, m)
			}
		}
		if len(fit) > 0 {
			return fit[s.Pick%len(fit)], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: nobody is %s: %w", inject.ErrNoEffect, s.On, context.Cause(ctx))
		}
	}
}

// tightLeads reports whether the leader is one whose clock must not be off.
func (f *Field) tightLeads() bool {
	for _, m := range f.Crew.Members {
		if m.Tight && m.Stands().Standing == actor.Leading {
			return true
		}
	}
	return false
}

// member chooses one of etcd's members.
func (f *Field) member(ctx context.Context, s plan.Strike) (int, error) {
	if s.On == plan.Leader {
		return f.Leader(ctx)
	}
	return s.Pick % f.Size(), nil
}

// note files what the reader of the log wants to know.
func (f *Field) note(format string, args ...any) error {
	return f.Log.Add(oracle.Event{Kind: oracle.Fault, Text: fmt.Sprintf(format, args...)})
}
