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

// Policy is how a request is repeated. It is a plain value.
type Policy struct {
	// Client is the client that sends the requests; if it is closed, no more are sent.
	Client any
	// Timeout bounds each attempt.
	Timeout time.Duration
	// Backoff gives the pause after the n-th failed attempt in a row, from 0.
	Backoff retry.Backoff
	// Failed, if set, is called after each failed attempt that is followed by another one, on the
	// caller's goroutine: it must not block. attempt counts from 1, pause is the time until the
	// next attempt. err includes the fault of the connection, if that can be found.
	Failed func(attempt int, err error, pause time.Duration)
}

// Insistent is how long only refusals must come, in a row, before a refusal that is not etcd's own
// is final: longer than a balancer refuses while it is changed or restarted, and short enough that
// a program without permission gets the error soon.
const Insistent = 3 * time.Second

// Until calls f, with a context for one attempt, until f returns nil (Until returns nil), an error
// of Final (Until returns the error in it), or a refusal that will not change, which Until returns:
// etcd's own, or one that was repeated for Insistent. If the client is closed the error wraps
// eldest.ErrClosed; if ctx ends it wraps ctx's cause. All calls are on the caller's goroutine.
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

// Attempts are the attempts at one request, for callers that make them one by one: Once, and after
// a failure Pause and Tell. The zero value is ready. It is not safe for concurrent use.
type Attempts struct {
	failed  int
	refused time.Time // since when only refusals have come; zero if the last answer was none
}

// Once calls f once, as Until does, and returns what Until would return. again reports whether
// Until would repeat the call.
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
			// This is the end of the attempt. It would be taken for the end of the caller's
			// context.
			if errors.Is(err, eldest.ErrOutcomeUnknown) {
				return fmt.Errorf("%w: %w", errClientClosed, eldest.ErrOutcomeUnknown), false
			}
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

// Tell reports that the last attempt failed and that another one follows after the pause.
func (a *Attempts) Tell(ctx context.Context, p Policy, err error, pause time.Duration) {
	if p.Failed != nil && ctx.Err() == nil {
		p.Failed(a.failed, explained(ctx, p.Client, err), pause)
	}
	Reconnect(p.Client)
}

var errClientClosed = fmt.Errorf("%w: the etcd client", eldest.ErrClosed)

// Final marks an error as the answer: a repeated request would not change it.
func Final(err error) error { return final{err} }

type final struct{ error }

func (f final) Unwrap() error { return f.error }
