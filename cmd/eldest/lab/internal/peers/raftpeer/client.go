package raftpeer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// client has the voter of a participant, from its first campaign on.
type client struct {
	cfg    peer.ClientConfig
	caller *caller

	closing context.Context
	close   context.CancelFunc
	minding sync.WaitGroup

	joining sync.Mutex // of the group
	mu      sync.Mutex
	voter   *voter // nil before the first campaign
	control *control
	waiting chan *tenure // of the candidate that campaigns, nil for none
}

func dial(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	c := &client{cfg: cfg, caller: newCaller(cfg.Net)}
	c.closing, c.close = context.WithCancel(context.Background())
	var extra opened
	// Participants that are no candidates, too, ask the extra voter's process for the leader.
	if err := c.ask(ctx, openPath, &extra); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// ask sends a request that concerns the election to the extra voter's process.
func (c *client) ask(ctx context.Context, path string, result any) error {
	return c.caller.call(ctx, c.cfg.Endpoints[0], path, url.Values{"election": {c.cfg.Election}}, result)
}

// join starts the voter and makes it a part of the group. It returns the candidate's tenure if it leads.
func (c *client) join(ctx context.Context) (_ *tenure, err error) {
	c.joining.Lock()
	defer c.joining.Unlock()
	if c.current() != nil {
		return nil, nil
	}
	mux := http.NewServeMux()
	service, err := serve(c.cfg.Net, "127.0.0.1:0", mux)
	if err != nil {
		return nil, err
	}
	v, err := newVoter(c.cfg.Net, c.cfg.Setting, voterID(c.cfg.ID, service.address()))
	if err != nil {
		return nil, errors.Join(err, service.close())
	}
	v.handle(mux)
	var t *tenure
	if c.cfg.Index == 0 {
		t, err = c.found(ctx, v)
	} else {
		err = retry(ctx, func(ctx context.Context) error { return c.enter(ctx, v) })
	}
	if err != nil {
		return nil, errors.Join(err, service.close(), v.shutdown())
	}
	c.mu.Lock()
	c.voter, c.control = v, service
	c.mu.Unlock()
	c.minding.Go(func() { c.mind(v) })
	return t, nil
}

// found makes the group, with the extra voter.
func (c *client) found(ctx context.Context, v *voter) (*tenure, error) {
	var extra opened
	if err := c.ask(ctx, openPath, &extra); err != nil {
		return nil, err
	}
	if err := v.found(ctx); err != nil {
		return nil, fmt.Errorf("founding the group: %w", err)
	}
	if err := v.await(ctx, v.AddVoter(extra.ID, extra.Address, 0, enqueueing)); err != nil {
		return nil, fmt.Errorf("adding the extra voter: %w", err)
	}
	return newTenure(v), nil
}

// enter asks the leader to add the voter.
func (c *client) enter(ctx context.Context, v *voter) error {
	var leader raft.ServerID
	if err := c.ask(ctx, leaderPath, &leader); err != nil {
		return err
	}
	self := url.Values{"id": {string(v.id)}, "address": {string(v.transport.LocalAddr())}}
	var nothing any
	return c.caller.call(ctx, controlOf(leader), addPath, self, &nothing)
}

// current returns the voter, nil before it has joined.
func (c *client) current() *voter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.voter
}

// mind gives the leadership to the candidate that campaigns, or transfers it away if there is none.
func (c *client) mind(v *voter) {
	for {
		select {
		case leads := <-v.LeaderCh():
			if !leads {
				continue
			}
		case <-c.closing.Done():
			return
		}
		c.mu.Lock()
		waiting := c.waiting
		c.waiting = nil
		c.mu.Unlock()
		if waiting != nil {
			waiting <- newTenure(v)
		} else {
			_ = v.handOver(c.closing) // if it fails, the leadership remains without a use until it is lost
		}
	}
}

// Observe is not supported: see System.
func (c *client) Observe(context.Context, func(string)) error {
	return fmt.Errorf("only voters know the leader: %w", errors.ErrUnsupported)
}

// Log asks the leader, which may be this participant.
func (c *client) Log(ctx context.Context) (log []string, err error) {
	err = retry(ctx, func(ctx context.Context) (err error) {
		if v := c.current(); v != nil && v.leads() {
			log, err = v.committed(ctx)
			return err
		}
		var leader raft.ServerID
		if err := c.ask(ctx, leaderPath, &leader); err != nil {
			return err
		}
		return c.caller.call(ctx, controlOf(leader), logPath, nil, &log)
	})
	return log, err
}

func (c *client) Guards() []int { return nil }

// Close transfers the leadership, if the participant leads, and ends its voter.
func (c *client) Close() error {
	c.joining.Lock()
	defer c.joining.Unlock()
	c.close()
	c.minding.Wait()
	v := c.current()
	if v == nil {
		return nil
	}
	if v.leads() {
		ctx, cancel := context.WithTimeout(context.Background(), loss(c.cfg.Setting))
		_ = v.resign(ctx) // the others may have ended; then nobody takes over
		cancel()
	}
	return errors.Join(c.control.close(), v.shutdown())
}
