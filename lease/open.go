package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/past"
	"github.com/eldest-io/eldest/internal/renewal"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/serial"
)

// attemptTimeout bounds one attempt to grant or to resume: a request to a member that does not
// respond costs this long, then another member is asked.
const attemptTimeout = 2 * time.Second

// Open has a lease granted and starts its session. It blocks until a server grants one, ctx ends,
// or etcd refuses permanently. While etcd is unavailable it repeats the attempt with back-off, and
// calls Hooks.Retrying for each failed attempt: if ctx never ends, only this hook shows that the
// address or the certificate is wrong. ctx bounds the grant alone; the session continues after it.
//
// On failure there is no session, and the error is an *eldest.OpError. It wraps eldest.ErrInvalid
// for a bad Config and eldest.ErrUnresponsive for a Config.Liveness that is not alive, before any
// request; eldest.ErrClosed for a closed client; ctx's error; or etcd's error if the request was
// refused. A grant whose reply was lost leaves a lease without keys that nobody
// renews and that expires by itself.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	cfg, err := checked(ctx, cfg)
	var ttl int64
	if err == nil {
		ttl, err = cfg.wanted()
	}
	if err != nil {
		return nil, opening("open session", 0, err)
	}
	s, err := acquire(ctx, cfg, "open session", true, func(ctx context.Context) (clientv3.LeaseID, time.Duration, error) {
		resp, err := cfg.Lease.Grant(ctx, ttl)
		if err != nil {
			return 0, 0, err
		}
		past.Forget(int64(resp.ID))
		return resp.ID, time.Duration(resp.TTL) * time.Second, nil
	})
	if err != nil {
		return nil, opening("open session", 0, err)
	}
	return s, nil
}

// Resume starts a session for a lease that exists: one that Abandon left, or an earlier process. It
// renews the lease at once, so keys, their tokens and leadership are kept. Config.TTL is ignored:
// the lease has its own. It blocks like Open.
//
// If the lease does not exist, or if this process has sent a request to revoke it that was not
// answered, Resume returns an error that wraps eldest.ErrSessionLost; open a new session then. The
// caller must ensure that no other process renews the lease, or has requests on their way that
// revoke it or delete its keys; nor may the keeper of a crashed process (Config.Keeper). If the
// earlier session had heartbeats this one must have the same: otherwise it would lead while a
// successor waits for a heartbeat, or for a shorter time. If it is resumed later than
// Heartbeat.Timeout its keys may have been deleted.
func Resume(ctx context.Context, cfg Config, id clientv3.LeaseID) (*Session, error) {
	cfg, err := checked(ctx, cfg)
	if err == nil && id <= 0 {
		err = fmt.Errorf("%w: the lease ID %d is not positive", eldest.ErrInvalid, id)
	}
	if err == nil {
		err = revoked(id)
	}
	if err != nil {
		return nil, opening("resume session", id, err)
	}
	s, err := acquire(ctx, cfg, "resume session", false, func(ctx context.Context) (clientv3.LeaseID, time.Duration, error) {
		ttl, err := cfg.confirmed(ctx, id)
		if why := revoked(id); why != nil { // by a session that has ended meanwhile
			return 0, 0, retryrpc.Final(why)
		}
		return id, ttl, err
	})
	if err != nil {
		return nil, opening("resume session", id, err)
	}
	return s, nil
}

// revoked returns an error if a session of this process may be revoking the lease.
func revoked(id clientv3.LeaseID) error {
	if past.Revoked(int64(id)) {
		return fmt.Errorf("%w: this process has asked etcd to revoke the lease, and the request may still arrive", eldest.ErrSessionLost)
	}
	return nil
}

// policy returns how a session sends the requests of op, with the Retrying hook.
func (c Config) policy(op string, timeout time.Duration, hooks *serial.Queue) retryrpc.Policy {
	p := retryrpc.Policy{Client: c.Lease, Timeout: timeout, Backoff: c.Backoff}
	if retrying := c.Hooks.Retrying; retrying != nil {
		p.Failed = func(attempt int, err error, pause time.Duration) {
			event := RetryingEvent{Op: op, Attempt: attempt, Err: err, Pause: pause, At: time.Now()}
			hooks.Do(func() { retrying(event) })
		}
	}
	return p
}

var errLate = errors.New("the reply arrived after the deadline of the lease")

// acquire calls grant, which grants (fresh) or renews, until a reply arrives before its deadline.
func acquire(ctx context.Context, cfg Config, op string, fresh bool, grant func(context.Context) (clientv3.LeaseID, time.Duration, error)) (s *Session, err error) {
	hooks := new(serial.Queue)
	policy := cfg.policy(op, attemptTimeout, hooks)
	err = policy.Until(ctx, func(ctx context.Context) error {
		sent := cfg.Clock.Now()
		id, ttl, err := grant(ctx)
		switch {
		case errors.Is(err, errGone):
			return retryrpc.Final(fmt.Errorf("%w: %w", eldest.ErrSessionLost, err))
		case err != nil:
			return err
		}
		r, err := cfg.rhythm(ttl)
		if err == nil { // Open has checked it; Resume did not know the TTL
			_, err = cfg.Heartbeat.pace(ttl)
		}
		if err != nil {
			return retryrpc.Final(fmt.Errorf("the server granted %v: %w", ttl, err))
		}
		if cfg.Clock.Now() >= r.Deadline(sent) {
			return errLate
		}
		s = newSession(cfg, id, r, sent, fresh, hooks)
		return nil
	})
	return s, err
}

// confirmed renews a lease once, and has a majority confirm the reply. It returns the granted TTL.
func (c Config) confirmed(ctx context.Context, id clientv3.LeaseID) (time.Duration, error) {
	answer, err := renewal.Once(ctx, c.Lease, id)
	switch {
	case err != nil:
		return 0, err
	case answer.TTL == 0:
		return 0, errGone
	case answer.Term == 0:
		return answer.TTL, nil
	}
	type reply struct {
		term uint64
		err  error
	}
	replies := make(chan reply, 1)
	client := renewal.Of(c.Lease, c.Majority)
	defer client.Release()
	question := client.Majority.Ask(attemptTimeout, func(term uint64, err error) { replies <- reply{term, err} })
	defer question.Stop()
	defer time.AfterFunc(attemptTimeout/2, question.Again).Stop()
	select {
	case r := <-replies:
		if err = r.err; err == nil {
			err = core.Replaced(answer.Term, r.term)
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("no majority confirmed the renewal: %w", err)
	}
	return answer.TTL, nil
}

// checked validates the arguments, before anything is sent.
func checked(ctx context.Context, cfg Config) (Config, error) {
	if ctx == nil {
		return cfg, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	if err := cfg.signs(); err != nil {
		return cfg, err
	}
	if err := cfg.Liveness.Err(); err != nil {
		return cfg, err
	}
	return cfg.withDefaults()
}

func opening(op string, id clientv3.LeaseID, err error) error {
	return &eldest.OpError{Op: op, Lease: int64(id), Err: err}
}
