package retryrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Policy says how to ask. It is a plain value.
type Policy struct {
	// Client is what the requests go through; a closed one ends the asking.
	Client any
	// Timeout bounds each attempt.
	Timeout time.Duration
	// Backoff gives the pause after the n-th failed attempt in a row, from 0.
	Backoff retry.Backoff
	// Failed, if set, is called after each failed attempt that another one follows, on the
	// asker's goroutine: it must not block. attempt counts from 1, pause is the time until
	// the next one. err says what is wrong with the connection, where that can be found out.
	Failed func(attempt int, err error, pause time.Duration)
}

// Insistent is how long nothing but refusals must come, in a row, before one that is not
// etcd's own is final: longer than a balancer refuses while it is changed or restarted, and
// short enough that a program which must not ask learns it soon.
const Insistent = 3 * time.Second

// Until calls f, with a context for one attempt, until it returns nil (so does
// Until), an error of Final (Until returns what is in it), or a refusal that will not
// change: etcd's own, or one that was repeated for Insistent (that). A closed client is
// an error that wraps eldest.ErrClosed; the end of ctx one that wraps its cause. All on
// the caller's goroutine.
func (p Policy) Until(ctx context.Context, f func(ctx context.Context) error) error {
	for attempts := (Attempts{}); ; {
		err, again := attempts.Once(ctx, p, f)
		if !again {
			return err
		}
		pause := attempts.Pause(p)
		attempts.Tell(ctx, p, err, pause)
		if cause := retry.Sleep(ctx, pause); cause != nil {
			return fmt.Errorf("%w (last answer: %w)", cause, err)
		}
	}
}

// Attempts are those at one question, for callers that make them one by one: Once, and after a
// failure Pause and Tell. The zero value is ready. It is not safe for concurrent use.
type Attempts struct {
	failed  int
	refused time.Time // since when nothing else has come; zero if something else has
}

// Once calls f once, as Until does, and returns what Until would return. again says that it
// would ask again.
func (a *Attempts) Once(ctx context.Context, p Policy, f func(ctx context.Context) error) (err error, again bool) {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx), false
	case rpcerr.Closed(p.Client):
		return errClientClosed, false
	}
	once, cancel := context.WithTimeout(ctx, p.Timeout)
	err = f(once)
	// Read before cancel, which would explain any cancellation.
	permanent, closed := rpcerr.Permanent(err), rpcerr.ClientClosed(once, p.Client, err)
	cancel()
	var settled final
	switch {
	case err == nil:
		return nil, false
	case errors.As(err, &settled):
		return settled.error, false
	case closed:
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			// The end of the attempt, not of the caller's context, for which
			// it would be taken.
			return errClientClosed, false
		}
		return fmt.Errorf("%w: %w", errClientClosed, err), false
	case permanent:
		return err, false
	case !rpcerr.Refused(err):
		a.refused = time.Time{}
	case a.refused.IsZero():
		a.refused = time.Now()
	case time.Since(a.refused) > Insistent:
		return err, false
	}
	return err, true
}

// Pause returns how long to wait before the next attempt.
func (a *Attempts) Pause(p Policy) time.Duration {
	a.failed++
	return p.Backoff(a.failed - 1)
}

// Tell says that the last attempt failed and that another one follows after the pause.
func (a *Attempts) Tell(ctx context.Context, p Policy, err error, pause time.Duration) {
	if p.Failed != nil && ctx.Err() == nil {
		p.Failed(a.failed, explained(ctx, p.Client, err), pause)
	}
	Reconnect(p.Client)
}

var errClientClosed = fmt.Errorf("%w: the etcd client", eldest.ErrClosed)

// Final marks an error as the answer: asking again would not change it.
func Final(err error) error { return final{err} }

type final struct{ error }

func (f final) Unwrap() error { return f.error }
