package bench

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

// remoteSession is a session in a worker.
type remoteSession struct {
	host *remote
	ref  int64
}

// Candidate blocks for as long as the worker takes to answer, which sends nothing to
// etcd for it.
func (s *remoteSession) Candidate(election, value string) (contender.Candidate, error) {
	a, err := s.host.call(context.Background(), workCall{Op: opCandidate, Of: s.ref, Election: election, Value: value})
	if err != nil {
		return nil, err
	}
	return &remoteCandidate{host: s.host, ref: a.Ref}, nil
}

// Close closes the session there.
func (s *remoteSession) Close(ctx context.Context) error {
	_, err := s.host.call(ctx, workCall{Op: opClose, Of: s.ref})
	return err
}

// remoteCandidate is a candidate in a worker. As with others, what the campaign has
// brought is for whoever saw it return.
type remoteCandidate struct {
	host  *remote
	ref   int64
	key   string
	tells bool
}

// Campaign returns the worker's time of the win, not that of the answer's arrival.
func (c *remoteCandidate) Campaign(ctx context.Context) (time.Time, error) {
	a, err := c.host.call(ctx, workCall{Op: opCampaign, Of: c.ref})
	if err != nil {
		return time.Time{}, err
	}
	c.key, c.tells = a.Key, a.Tells
	return unstamp(a.At), nil
}

// Key is what the win's answer said.
func (c *remoteCandidate) Key() string { return c.key }

// Resign resigns there.
func (c *remoteCandidate) Resign(ctx context.Context) error {
	_, err := c.host.call(ctx, workCall{Op: opResign, Of: c.ref})
	return err
}

// Lost delivers the worker's time, and nothing ever if the worker ends before.
func (c *remoteCandidate) Lost() <-chan time.Time {
	if !c.tells {
		return nil
	}
	lost := make(chan time.Time, 1)
	id, answer, err := c.host.begin(workCall{Op: opLost, Of: c.ref})
	if err != nil {
		c.host.drop(id)
		return lost
	}
	go func() {
		select {
		case a := <-answer:
			if a.Error == "" {
				lost <- unstamp(a.At)
			}
		case <-c.host.gone:
		}
	}()
	return lost
}

// Put writes from there.
func (c *remoteCandidate) Put(ctx context.Context, key, value string) error {
	_, err := c.host.call(ctx, workCall{Op: opPut, Of: c.ref, Key: key, Value: value})
	return err
}

// remoteCrowd is a crowd in a worker.
type remoteCrowd struct {
	host *remote
	ref  int64
}

// Await returns times of the worker's clock.
func (c *remoteCrowd) Await(ctx context.Context, key string) (Seen, error) {
	a, err := c.host.call(ctx, workCall{Op: opAwait, Of: c.ref, Key: key})
	if err != nil {
		return Seen{}, err
	}
	return Seen{First: unstamp(a.First), Last: unstamp(a.Last)}, nil
}

// Close sends the crowd home, unless the worker has gone with it.
func (c *remoteCrowd) Close(ctx context.Context) {
	_, _ = c.host.call(ctx, workCall{Op: opClose, Of: c.ref})
}
