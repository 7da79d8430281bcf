package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/past"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// errGone is a server's answer that the lease does not exist.
var errGone = errors.New("the server says the lease is gone")

// run is the session's only goroutine: it renews until the session ends, then
// revokes, if it is to.
func (s *Session) run() {
	defer close(s.done)
	defer s.noRevoke()
	for failures := 0; ; {
		if retry.Sleep(s.ctx, s.pause(failures)) != nil {
			break
		}
		err := s.renew(failures)
		if s.ctx.Err() != nil {
			break
		}
		if err == nil {
			failures = 0
			continue
		}
		failures++
	}
	s.mu.Lock()
	cleanup := s.cleanup
	s.mu.Unlock()
	if cleanup {
		s.revoked = s.revoke()
	}
}

// pause returns how long to wait before the next attempt.
func (s *Session) pause(failures int) time.Duration {
	if failures > 0 {
		return s.cfg.Backoff(failures - 1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	every := s.rhythm.renewal.Every
	return retry.Spread(every, every/10)
}

// patience returns the time-outs of a request and of an attempt, which is two of them. That
// of a request grows after failures, for the replies may not be lost but slow; but no
// attempt may take more than half of the time that is left, so that there is always another
// one, and no request more than half of that, so that one that is swallowed does not cost
// the attempt.
func (s *Session) patience(failures int) (request, attempt time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	timeout := s.rhythm.renewal.Timeout
	limit := s.checked() / 2
	for range failures {
		if timeout >= limit/2 {
			break
		}
		timeout *= 2
	}
	request = max(s.rhythm.renewal.Timeout, min(timeout, limit/2))
	return request, max(2*request, limit)
}

// renew makes one attempt, after so many failed ones in a row, and takes its
// result in.
func (s *Session) renew(failures int) error {
	// First the clock: a process that wakes up after its deadline must not
	// prolong a lease that it no longer counts on.
	if !s.Holds(0) {
		return nil
	}
	sent := s.cfg.Clock.Now()
	resp, err := s.ask(failures)
	received := s.cfg.Clock.Now()

	s.mu.Lock()
	defer s.mu.Unlock()
	// A reply may have waited in a buffer while this process was stopped: what
	// counts is the clock, before anything else is believed.
	left := s.checked()
	if s.state == Lost {
		return nil
	}
	switch {
	case errors.Is(err, errGone):
		s.cleanup = false // nothing is left to revoke
		s.loseLocked(fmt.Errorf("%w: %w", eldest.ErrSessionLost, err))
		past.Forget(int64(s.id))
		return nil
	case err != nil:
		s.overdue(left, err)
		if !errors.Is(err, eldest.ErrUnresponsive) {
			ask.Reconnect(s.cfg.Lease)
		}
		return err
	}
	return s.renewed(sent, received, time.Duration(resp.TTL)*time.Second)
}

// ask sends the renewal, if the application is alive.
func (s *Session) ask(failures int) (*clientv3.LeaseKeepAliveResponse, error) {
	if err := s.cfg.Pulse.Err(); err != nil {
		return nil, err
	}
	request, attempt := s.patience(failures)
	ctx, cancel := context.WithTimeout(s.ctx, attempt)
	defer cancel()
	return s.cfg.keepAlive(ctx, s.id, request, func() bool { return s.Holds(0) && s.cfg.Pulse.Err() == nil })
}

// renewed takes in a confirmed renewal. The caller holds mu; the session lives.
func (s *Session) renewed(sent, received, granted time.Duration) error {
	r := s.rhythm
	if granted != r.ttl {
		var err error
		if r, err = s.cfg.rhythm(granted); err != nil {
			s.loseLocked(fmt.Errorf("%w: the server now grants %v: %w", eldest.ErrSessionLost, granted, err))
			return nil
		}
	}
	slack := s.deadline.left(received)
	next, ok := s.deadline.renewed(sent, received, r.ttl, r.margin)
	if !ok {
		err := fmt.Errorf("the reply took %v, too long to prove anything", received-sent)
		s.overdue(slack, err)
		return err
	}
	s.rhythm, s.deadline = r, next
	if s.checked(); s.state == Lost { // a lower TTL, and a reply that took longer
		return nil
	}
	s.timer.Reset(next.left(received))
	event := RenewedEvent{Latency: received - sent, TTL: granted, Slack: slack}
	if f := s.cfg.Hooks.Renewed; f != nil {
		s.hooks.Do(func() { f(event) })
	}
	if f := s.cfg.Hooks.Recovered; f != nil && s.state == Jeopardy {
		s.hooks.Do(func() { f(event) })
	}
	s.state = Alive
	return nil
}

// overdue notes that a renewal failed. The caller holds mu; the session lives.
func (s *Session) overdue(left time.Duration, err error) {
	if s.state == Jeopardy {
		return
	}
	s.state = Jeopardy
	if f := s.cfg.Hooks.Jeopardy; f != nil {
		s.hooks.Do(func() { f(JeopardyEvent{Remaining: left, Err: err}) })
	}
}

// keepAlive renews once, and has the answer confirmed; each of the two takes timeout at
// most, and is asked for twice if half of that has gone by, the renewal only if again
// still says yes. It returns errGone when the server says that the lease does not exist:
// as an error, or, as other clients report it, as a TTL of 0.
func (c Config) keepAlive(ctx context.Context, id clientv3.LeaseID, timeout time.Duration, again func() bool) (*clientv3.LeaseKeepAliveResponse, error) {
	resp, err := twice(ctx, timeout, again, func(ctx context.Context) (*clientv3.LeaseKeepAliveResponse, error) {
		resp, err := c.Lease.KeepAliveOnce(ctx, id)
		if rpcerr.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil, nil //nolint:nilnil // an answer, and as certain as any: no lease
		}
		return resp, err
	})
	switch {
	case err != nil:
		return nil, err
	case resp == nil || resp.TTL <= 0:
		return nil, errGone
	}
	if err := c.confirm(ctx, resp, timeout); err != nil {
		return nil, err
	}
	return resp, nil
}

// revoke removes the lease and with it its keys. It tries until the server
// answers, or until the lease has expired by itself: one TTL after the last
// renewal could have reached the server, that is one TTL from now.
func (s *Session) revoke() error {
	s.mu.Lock()
	ttl, timeout := s.rhythm.ttl, s.rhythm.renewal.Timeout
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.revoking, ttl)
	defer cancel()
	refused := true // each attempt, or none was made
	policy := s.cfg.policy("revoke", max(timeout, time.Second), s.hooks)
	err := policy.Until(ctx, func(ctx context.Context) error {
		_, err := s.cfg.Lease.Revoke(ctx, s.id)
		if rpcerr.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		refused = refused && rpcerr.Definite(err)
		return err
	})
	if err != nil && refused {
		past.Refused(int64(s.id))
	}
	switch {
	case err == nil:
		past.Forget(int64(s.id))
		return nil
	case s.revoking.Err() != nil:
		return nil // given up by Abandon: the lease is to live on
	case ctx.Err() != nil:
		// The context is our own: its error would tell the caller of an end that was
		// none of theirs.
		return fmt.Errorf("revoke: %w: no answer within the TTL of %v; the lease has expired by itself (%s)", eldest.ErrSilent, ttl, err.Error())
	default:
		return fmt.Errorf("revoke: %w; the lease expires by itself within %v", err, ttl)
	}
}
