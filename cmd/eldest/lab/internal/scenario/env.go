package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// Env is what a plan is run in: the cluster, the participants, and all that was told.
//
// Its methods are for one goroutine, but for Tell and Note.
type Env[F Fact[F]] struct {
	*inject.Field
	Config
	// History is all facts, Tape where they are told to people.
	History story.History[F]
	Tape    *story.Tape

	plan         Plan[F]
	participants []*Participant // all that were ever started
	steps        int

	lines story.Lines     // of JSON
	mu    sync.Mutex      // of what follows, and of the plan's words
	once  map[string]bool // what is not told again, and in this step
	step  map[string]bool
}

// open starts the cluster. On an error nothing is left.
func open[F Fact[F]](ctx context.Context, cfg Config, plan Plan[F]) (*Env[F], error) {
	e := &Env[F]{Config: cfg, plan: plan, once: make(map[string]bool), step: make(map[string]bool)}
	e.Tape, e.lines.To = story.NewTape(cfg.Out, cfg.Style), cfg.Out
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	e.Field, err = inject.Open(starting, etcdtest.Config{
		Members: cfg.Members, Heartbeat: Heartbeat, Election: Election, Dir: os.TempDir(), Command: []string{cfg.Executable, "etcd", "member"},
	})
	if err != nil {
		return nil, err
	}
	if err := plan.Open(e); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// close ends everything, whatever goes on, and removes all data.
func (e *Env[F]) close() error {
	e.plan.Close()
	for _, p := range e.participants {
		p.End()
	}
	e.Tape.Flush()
	return e.Close()
}

// Cut separates a member from all others, and tells if that one led etcd. It blocks until that
// took effect, for no longer than Expiry.
func (e *Env[F]) Cut(ctx context.Context, m *etcdtest.Member) error {
	if e.Leads(ctx, m.Index, Election) {
		e.Aside("%s happens to lead etcd itself; the other members must first elect another, and leases begin anew", m.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, e.Expiry())
	defer cancel()
	return e.Field.Cut(ctx, etcdtest.BothWays, m.Index)
}

// Delete deletes a candidate's key, as an operator may. It blocks until the key is gone, for
// no longer than Expiry.
func (e *Env[F]) Delete(ctx context.Context, key string, token eldest.Token) error {
	ctx, cancel := context.WithTimeout(ctx, e.Expiry())
	defer cancel()
	return e.Field.Delete(ctx, key, int64(token))
}

// Await blocks until cond holds for the facts so far. When that takes longer than Expiry it
// returns an error that says what was awaited.
func (e *Env[F]) Await(ctx context.Context, what string, cond func([]F) bool) error {
	return Await(ctx, &e.History, e.Expiry(), what, cond)
}

// Await blocks until cond holds for a history so far. When that takes longer than the limit
// it returns an error that says what was awaited.
func Await[F story.Instant](ctx context.Context, h *story.History[F], limit time.Duration, what string, cond func([]F) bool) error {
	overdue := fmt.Errorf("waited %v in vain for this: %s", limit, what)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue)
	defer cancel()
	return h.Await(ctx, cond)
}

// Last returns the newest fact that matches, in the order of their arrival, or nil.
func Last[F any](facts []F, match func(F) bool) *F {
	for i := len(facts) - 1; i >= 0; i-- {
		if match(facts[i]) {
			return &facts[i]
		}
	}
	return nil
}

// Leftovers counts the keys of an election and the leases of the whole cluster. It blocks
// until there are none, for at most the time that a lease may take to expire.
func (e *Env[F]) Leftovers(ctx context.Context, election string) (keys, leases int, err error) {
	for limit := time.Now().Add(e.Expiry()); ; {
		queue, err := observe.Queue(ctx, e.Client(), nil, election)
		if err != nil {
			return 0, 0, err
		}
		granted, err := e.Client().Leases(ctx)
		if err != nil {
			return 0, 0, err
		}
		keys, leases = len(queue), len(granted.Leases)
		if keys+leases == 0 || time.Now().After(limit) {
			return keys, leases, nil
		}
		if err := Sleep(ctx, Heartbeat); err != nil {
			return 0, 0, err
		}
	}
}

// Sleep waits; ctx ends it, with its cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
