package transfer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// Clients are the clients of To. Both must use the same etcd.
type Clients struct {
	KV      clientv3.KV
	Watcher clientv3.Watcher
}

// Client returns Clients with c as both; the zero Clients if c is nil.
func Client(c *clientv3.Client) Clients {
	if c == nil {
		return Clients{}
	}
	return Clients{KV: c, Watcher: c}
}

// Move is a candidate that requeued.
type Move struct {
	// Candidate is the candidate before the requeue.
	Candidate eldest.Candidate
	// Token is its new token.
	Token eldest.Token
}

// Result is what To has done, also if it failed.
type Result struct {
	// Plan is the plan.
	Plan Plan
	// Moved are the candidates that have requeued, in order, as far as they have answered: the answer
	// is missing if Serve ended at that moment.
	Moved []Move
	// Drained means that the leader has given leadership up.
	Drained bool
	// Leader is the oldest candidate after that, at Revision; zero if there was none. It leads as
	// soon as it has proven that, unless it yields (election.Config.ShouldYield): see
	// Options.ShouldYield.
	Leader   eldest.Candidate
	Revision int64
}

// To hands leadership over to the candidate with the given key: it surveys the election, makes a
// plan, sends requests to the candidates that are to requeue, one after another, the leader last,
// and waits until the target leads. It blocks until then, until a candidate refuses or does not
// answer in time, or until ctx ends (its cause). The Result has what was done, on errors too.
//
// Errors: a *Refusal, which wraps eldest.ErrTransferRefused (the leader continues to lead, and the
// candidates in Result.Moved have moved; a second To plans for the new queue); ErrOvertaken;
// eldest.ErrOutcomeUnknown if the leader has drained, or may have, and its key was not deleted
// within Options.Drain; eldest.ErrInvalid before anything is sent; etcd's error if it refuses.
//
// A candidate that registers meanwhile is behind all others or, at worst, in front of those that
// requeue after that. Two transfers at the same time do not mix: a candidate has one request at a
// time, and the other transfer is refused as Busy, or Changed.
func To(ctx context.Context, clients Clients, name, target string, options Options) (Result, error) {
	options, err := options.withDefaults()
	if err == nil {
		err = check(ctx, clients.KV, name)
	}
	if err == nil && absent.Client(clients.Watcher) {
		err = fmt.Errorf("%w: the watcher is nil", eldest.ErrInvalid)
	}
	var result Result
	if err == nil {
		result, err = to(ctx, clients, name, target, options)
	}
	if err != nil {
		return result, &eldest.OpError{Op: "transfer", Election: name, Key: target, Err: err}
	}
	return result, nil
}

func to(ctx context.Context, clients Clients, name, target string, options Options) (result Result, err error) {
	for attempt := 0; ; attempt++ {
		queue, err := survey(ctx, clients.KV, name)
		if err != nil {
			return result, err
		}
		result.Plan, err = queue.Plan(target, options)
		var refusal *Refusal
		if err == nil {
			break
		} else if attempt > 0 || !errors.As(err, &refusal) || refusal.Reason != UnknownTarget {
			return result, err
		}
		// A candidate that requeues (for another transfer) is out of the queue for a moment.
		if err := retry.Sleep(ctx, requeuing); err != nil {
			return result, err
		}
	}
	h := &handover{clients: clients, options: options, plan: result.Plan, source: &watch.Source{
		KV: clients.KV, Watcher: clients.Watcher,
		Backoff: retry.Default(), Timeout: election.DefaultTimeout, WatchCheck: time.Second,
	}}
	for _, m := range result.Plan.asked {
		what := Requeue
		if m.Key == result.Plan.Leader.Key {
			what = Drain
		}
		a, err := h.ask(ctx, m, what)
		var vanished *vanishedError
		if what == Drain && errors.As(err, &vanished) {
			err = h.left(ctx, vanished.Refusal)
		}
		if err != nil {
			return result, err
		}
		if what == Drain {
			result.Drained = true
		} else {
			result.Moved = append(result.Moved, Move{Candidate: m.Candidate, Token: a.Token})
		}
	}
	result.Leader, result.Revision, err = h.arrival(ctx)
	return result, err
}

// handover is the state of one To, once there is a plan.
type handover struct {
	clients Clients
	options Options
	plan    Plan
	source  *watch.Source
}

// left returns nil if the key of the leader, whose request key was deleted, is deleted too, now or
// in a moment; otherwise refusal, with an unknown outcome.
func (h *handover) left(ctx context.Context, refusal *Refusal) error {
	waiting, cancel := context.WithTimeoutCause(ctx, h.options.Timeout, errEnoughWaiting)
	defer cancel()
	_, err := h.source.Gone(waiting, watch.Life{Key: h.plan.Leader.Key, Token: h.plan.Leader.Token})
	if err == nil {
		return nil
	}
	refusal.Unknown = true
	if errors.Is(err, errEnoughWaiting) {
		return refusal
	}
	return errors.Join(err, refusal)
}

// arrival waits until the drained leader's key is deleted, and returns the leader after that.
func (h *handover) arrival(ctx context.Context) (leader eldest.Candidate, revision int64, err error) {
	late := fmt.Errorf("%w: the leader has drained, and its key was not deleted within %v", eldest.ErrOutcomeUnknown, h.options.Drain)
	waiting, cancel := context.WithTimeoutCause(ctx, h.options.Drain, late)
	defer cancel()
	if _, err = h.source.Gone(waiting, watch.Life{Key: h.plan.Leader.Key, Token: h.plan.Leader.Token}); err != nil {
		return leader, 0, err
	}
	var line txn.Snapshot
	err = policy(h.clients.KV).Until(ctx, func(once context.Context) (err error) {
		line, err = txn.ReadSnapshot(once, h.clients.KV, h.plan.Election)
		return err
	})
	if err != nil {
		return leader, 0, fmt.Errorf("%w: the leader's key was deleted, but the next leader could not be read: %w", eldest.ErrOutcomeUnknown, err)
	}
	if len(line.Queue) > 0 {
		leader = line.Queue[0]
	}
	if leader.Token != h.plan.Target.Token {
		return leader, line.Revision, fmt.Errorf("%w: %q", ErrOvertaken, leader.Key)
	}
	return leader, line.Revision, nil
}

// newID returns the ID of a new request.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return hex.EncodeToString(b[:])
}

// requeuing is the time in which a candidate that requeues is nearly always registered again if
// etcd answers: two requests.
const requeuing = 100 * time.Millisecond

// errEnoughWaiting ends the wait for an answer.
var errEnoughWaiting = errors.New("no answer in time")
