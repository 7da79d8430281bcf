package raftpeer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// client has the voter of a participant, from its first campaign on.
type client struct {
	cfg    peer.ClientConfig
	caller caller
	life   *peer.Life // minds the voter

	mu      sync.Mutex
	voter   *voter // nil before the first campaign
	control *control
	waiting chan *tenure // of the candidate that campaigns, nil for none
}

func dial(ctx context.Context, cfg peer.ClientConfig) (peer.Client, error) {
	c := &client{cfg: cfg, caller: newCaller(cfg.Net), life: peer.NewLife()}
	var extra opened
	// Participants that are no candidates, too, ask the extra voter's process for the leader.
	if err := c.ask(ctx, openPath, &extra); err != nil {
		c.life.End()
		return nil, err
	}
	return c, nil
}

// ask sends a request that concerns the election to the extra voter's process.
func (c *client) ask(ctx context.Context, path string, result any) error {
	return c.caller.call(ctx, c.cfg.Endpoints[0], path, c.election(), result)
}

// election is the parameter of a request that concerns the election.
func (c *client) election() url.Values { return url.Values{"election": {c.cfg.Election}} }

// current returns the voter, nil before it has joined.
func (c *client) current() *voter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.voter
}

// Campaign makes the participant a voter, and waits until it leads. One candidate at a time may campaign.
func (c *client) Campaign(ctx context.Context, _ string, queued func()) (peer.Tenure, error) {
	won := make(chan *tenure, 1)
	c.mu.Lock()
	c.waiting = won
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.waiting = nil
		c.mu.Unlock()
	}()
	if c.current() == nil {
		if t, err := c.join(ctx); t != nil || err != nil {
			return t, err
		}
	}
	v := c.current()
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case t := <-won:
			return t, nil
		case <-ticks.C:
			if v.leader() != "" && v.leader() != v.id {
				ticks.Stop()
				queued()
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// join starts the voter and makes it a part of the group. It returns a tenure if the participant leads already.
func (c *client) join(ctx context.Context) (t peer.Tenure, err error) {
	mux := http.NewServeMux()
	service, err := serve(c.cfg.Net, mux)
	if err != nil {
		return nil, err
	}
	v, err := newVoter(c.cfg.Net, c.cfg.Setting, voterID(c.cfg.ID, service.address()))
	if err != nil {
		return nil, errors.Join(err, service.close())
	}
	v.handle(mux)
	if c.cfg.Index == 0 {
		t, err = c.found(ctx, v)
	} else {
		err = peer.Retry(ctx, func(ctx context.Context) error { return c.enter(ctx, v) })
		if err == nil {
			err = peer.Retry(ctx, func(ctx context.Context) error { return c.known(ctx, v) })
		}
	}
	if err != nil {
		return nil, errors.Join(err, service.close(), v.shutdown())
	}
	c.mu.Lock()
	c.voter, c.control = v, service
	c.mu.Unlock()
	c.life.Go(func() { c.mind(v) })
	return t, nil
}

// found makes the group, with the extra voter.
func (c *client) found(ctx context.Context, v *voter) (peer.Tenure, error) {
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

// known returns an error until the extra voter has the voter in its configuration. The leader and the voter alone commit the
// change, too; if the leader failed then, the extra voter would refuse to vote for a candidate that it does not know, and
// could not win with the votes of its own configuration: nobody would lead.
func (c *client) known(ctx context.Context, v *voter) error {
	asked := c.election()
	asked.Set("id", string(v.id))
	var nothing any
	return c.caller.call(ctx, c.cfg.Endpoints[0], knownPath, asked, &nothing)
}

// mind gives the leadership to the candidate that campaigns, or transfers it away if there is none.
func (c *client) mind(v *voter) {
	for {
		select {
		case leads := <-v.LeaderCh():
			if !leads {
				continue
			}
		case <-c.life.Done():
			return
		}
		c.mu.Lock()
		waiting := c.waiting
		c.waiting = nil
		c.mu.Unlock()
		if waiting != nil {
			waiting <- newTenure(v)
		} else {
			_ = v.handOver(c.life) // if it fails, the leadership remains without a use until it is lost
		}
	}
}

// Log asks the leader, which may be this participant.
func (c *client) Log(ctx context.Context) (log []string, err error) {
	err = peer.Retry(ctx, func(ctx context.Context) (err error) {
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

// Close transfers the leadership, if the participant leads, and ends its voter.
func (c *client) Close() error {
	c.life.End()
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

// tenure is the leadership of a voter in one term.
type tenure struct {
	voter *voter
	term  uint64
}

func newTenure(v *voter) *tenure { return &tenure{v, v.CurrentTerm()} }

// Holds reports whether the voter leads, in the term of the win. That is what raft tells by LeaderCh.
func (t *tenure) Holds() bool { return t.voter.leads() && t.voter.CurrentTerm() == t.term }

func (t *tenure) Append(ctx context.Context, entry string) error {
	if t.voter.CurrentTerm() != t.term {
		return fmt.Errorf("another term: %w", peer.ErrRefused)
	}
	err := t.voter.await(ctx, t.voter.Apply([]byte(entry), enqueueing))
	if errors.Is(err, raft.ErrNotLeader) {
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	}
	return err // raft.ErrLeadershipLost, too: a successor may commit the entry
}

// Resign transfers the leadership to another participant.
func (t *tenure) Resign(ctx context.Context) error {
	if !t.Holds() {
		return nil
	}
	return t.voter.resign(ctx)
}
