package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/txn"
)

// queue returns who stands, by what has been reported, the eldest first.
func (s *stage) queue() []*candidacy { return standing(s.History.Facts()) }

func standing(facts []Fact) []*candidacy {
	var queue []*candidacy
	for _, c := range candidacies(facts) {
		if c.ended.IsZero() {
			queue = append(queue, c)
		}
	}
	return queue
}

// fill starts candidates until as many stand as were asked for. They come one by
// one, so that the names are in the order of the queue.
func (s *stage) fill(ctx context.Context) error {
	for len(s.queue()) < s.cfg.Candidates {
		s.named++
		name := fmt.Sprintf("c%d", s.named)
		s.beats[name] = beating(s.named)
		if err := s.stand(ctx, name, s.memberFor(s.named)); err != nil {
			return err
		}
	}
	return nil
}

// round is how many candidates the acts of a round use up, from the front of the queue.
const round = 6

// beating reports whether the n-th candidate has heartbeats: the fourth, which is killed then, and the fifth,
// which is next.
func beating(n int) bool { return n%round == 4 || n%round == 5 }

// memberFor chooses the member of the n-th candidate. The sixth of a round leads when a member
// is cut off. It has the last member to itself, so that the cut takes nobody else
// with it; should it do so anyway, that is told and judged like everything else.
func (s *stage) memberFor(n int) int {
	members := s.cfg.Members
	switch {
	case members == 1:
		return 0
	case n%round == 0:
		return members - 1
	default:
		return n % (members - 1)
	}
}

// picture draws the queue as etcd has it.
func (s *stage) picture(ctx context.Context) error {
	if s.JSON {
		return nil
	}
	entries, err := s.entries(ctx, nil)
	if err != nil || len(entries) == 0 {
		return err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = string(e.Value) // the candidates stand with their names
	}
	names[0] = s.Style.Paint(story.Green, fmt.Sprintf("%s(leader, token %d)", names[0], entries[0].Token))
	s.Say(scenario.Margin + "queue: " + strings.Join(names, " <- "))
	return nil
}

// entries asks etcd for the queue, with the leases' remaining times if leases is
// not nil.
func (s *stage) entries(ctx context.Context, leases clientv3.Lease) ([]observe.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Expiry())
	defer cancel()
	return observe.Queue(ctx, s.Client(), leases, electionName)
}

// write writes under the guard of a tenure, as a leader does its work, and records
// whether etcd let it through.
func (s *stage) write(ctx context.Context, c *candidacy) error {
	ctx, cancel := context.WithTimeout(ctx, s.Expiry())
	defer cancel()
	guard := txn.Guard{Election: electionName, Key: c.key, Token: c.token}
	sent := time.Now()
	_, err := guard.KV(s.Client()).Put(ctx, workKey, c.actor)
	f := Fact{At: sent, Kind: Guarded, Actor: c.actor, Key: c.key, Token: c.token, Accepted: err == nil}
	var refused *txn.GuardError
	switch {
	case err == nil:
	case errors.As(err, &refused) && errors.Is(err, eldest.ErrDeposed):
		f.Found = refused.Found
	default:
		return fmt.Errorf("a guarded write: %w", err)
	}
	s.Tell(f)
	return nil
}
