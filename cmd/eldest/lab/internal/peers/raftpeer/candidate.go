package raftpeer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// Candidate returns the candidate of the participant. One at a time may campaign.
func (c *client) Candidate(string) (peer.Candidate, error) { return candidate{c}, nil }

type candidate struct{ client *client }

// Campaign makes the participant a voter, and waits until it leads. A voter that is not asked to lead any
// more, because ctx has ended, remains one.
func (c candidate) Campaign(ctx context.Context, queued func()) (peer.Tenure, error) {
	won := make(chan *tenure, 1)
	c.client.mu.Lock()
	if c.client.waiting != nil {
		c.client.mu.Unlock()
		return nil, fmt.Errorf("a second candidate of a voter: %w", errors.ErrUnsupported)
	}
	c.client.waiting = won
	c.client.mu.Unlock()
	defer c.withdraw(won)

	t, err := c.client.join(ctx)
	if err != nil {
		return nil, err
	}
	if t != nil {
		return t, nil
	}
	v := c.client.current()
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for known := false; ; {
		select {
		case t := <-won:
			return t, nil
		case <-ticks.C:
			if !known && v.leader() != "" && v.leader() != v.id {
				known = true
				ticks.Stop()
				queued()
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// withdraw ends a campaign.
func (c candidate) withdraw(won chan *tenure) {
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	if c.client.waiting == won {
		c.client.waiting = nil
	}
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
