package ask

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
	var refused time.Time // since when nothing else has come; zero if something else has
	for attempt := 0; ; attempt++ {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case rpcerr.Closed(p.Client):
			return errClientClosed
		}
		once, cancel := context.WithTimeout(ctx, p.Timeout)
		err := f(once)
		// Read before cancel, which would explain any cancellation.
		permanent, closed := rpcerr.Permanent(err), rpcerr.ClientClosed(once, p.Client, err)
		cancel()
		var settled final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &settled):
			return settled.error
		case closed:
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				// The end of the attempt, not of the caller's context, for which
				// it would be taken.
				return errClientClosed
			}
			return fmt.Errorf("%w: %w", errClientClosed, err)
		case permanent:
			return err
		case !rpcerr.Refused(err):
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) > Insistent:
			return err
		}
		pause := p.Backoff(attempt)
		if p.Failed != nil && ctx.Err() == nil {
			p.Failed(attempt+1, explained(ctx, p.Client, err), pause)
		}
		Reconnect(p.Client)
		if cause := retry.Sleep(ctx, pause); cause != nil {
			return fmt.Errorf("%w (last answer: %w)", cause, err)
		}
	}
}

var errClientClosed = fmt.Errorf("%w: the etcd client", eldest.ErrClosed)

// Final marks an error as the answer: asking again would not change it.
func Final(err error) error { return final{err} }

type final struct{ error }

func (f final) Unwrap() error { return f.error }
