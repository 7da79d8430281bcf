package bench

import (
	"context"
	"time"
)

// remoteSession is a session in a worker.
type remoteSession struct {
	host *remote
	ref  int64
}

// Candidate blocks for as long as the worker takes to answer, which sends nothing to
// etcd for it.
func (s *remoteSession) Candidate(election, value string) (Candidate, error) {
	a, err := s.host.call(context.Background(), "Candidate", workCall{Of: s.ref, Election: election, Value: value})
	if err != nil {
		return nil, err
	}
	return &remoteCandidate{host: s.host, ref: a.of}, nil
}

// Close closes the session there.
func (s *remoteSession) Close(ctx context.Context) error {
	_, err := s.host.call(ctx, "Close", workCall{Of: s.ref})
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
	a, err := c.host.call(ctx, "Campaign", workCall{Of: c.ref})
	if err != nil {
		return time.Time{}, err
	}
	c.key, c.tells = a.Key, a.Tells
	return a.At, nil
}

// Key is what the win's answer said.
func (c *remoteCandidate) Key() string { return c.key }

// Resign resigns there.
func (c *remoteCandidate) Resign(ctx context.Context) error {
	_, err := c.host.call(ctx, "Resign", workCall{Of: c.ref})
	return err
}

// Lost delivers the worker's time, and nothing ever if the worker ends before.
func (c *remoteCandidate) Lost() <-chan time.Time {
	if !c.tells {
		return nil
	}
	lost := make(chan time.Time, 1)
	sent := c.host.begin("Lost", workCall{Of: c.ref})
	go func() {
		select {
		case <-sent.Done:
			if sent.Error == nil {
				lost <- sent.Reply.(*workAnswer).At
			}
		case <-c.host.gone:
		}
	}()
	return lost
}

// Put writes from there.
func (c *remoteCandidate) Put(ctx context.Context, key, value string) error {
	_, err := c.host.call(ctx, "Put", workCall{Of: c.ref, Key: key, Value: value})
	return err
}

// remoteCrowd is a crowd in a worker.
type remoteCrowd struct {
	host *remote
	ref  int64
}

// Await returns times of the worker's clock.
func (c *remoteCrowd) Await(ctx context.Context, key string) (Seen, error) {
	a, err := c.host.call(ctx, "Await", workCall{Of: c.ref, Key: key})
	return a.Seen, err
}

// Close sends the crowd home, unless the worker has gone with it.
func (c *remoteCrowd) Close(ctx context.Context) {
	_, _ = c.host.call(ctx, "Close", workCall{Of: c.ref})
}
