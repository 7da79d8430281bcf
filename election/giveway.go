package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/txn"
)

// ByPriority returns a Config.GiveWay for candidates of which the best one is to lead:
// it gives way while somebody else stands whose value has a strictly higher priority.
// priority reads it from a candidate's value, the own one's too; it must be the same
// function of the value for all candidates, quick, and safe for concurrent use. Values
// that it cannot read it ranks as it likes.
//
// It comes to an end: whoever gives way enters behind somebody strictly better, who then
// is nearer by one, and the best one never gives way; equal ones lead in their order.
// Not promised: that the best one leads. Nobody who leads gives way to a better one that
// comes later (package transfer hands over), and candidates without this option lead when
// it is their turn. Nor is it fair: while better ones stand a worse one never leads. A
// better one that hangs while its key stands is waited for until its lease expires. Each
// passing over costs two requests, and each candidate gives way at most once for each
// better one that comes to stand. One that gives way again within a second first stands
// still at its new place, for as long as Config.Backoff says: nobody leads meanwhile if
// all others go in that time.
func ByPriority(priority func(value []byte) int) func(own eldest.Candidate, others []eldest.Candidate) bool {
	return func(own eldest.Candidate, others []eldest.Candidate) bool {
		mine := priority(own.Value)
		for _, other := range others {
			if priority(other.Value) > mine {
				return true
			}
		}
		return false
	}
}

// givesWay returns errGiveWay if the candidate, which is the oldest, is to step back
// instead of leading.
func (c *Candidate) givesWay(ctx context.Context, s *standing) error {
	var line txn.Line
	err := c.policy().Until(ctx, func(once context.Context) (err error) {
		line, err = txn.ReadLine(once, c.cfg.KV, c.cfg.Election)
		return err
	})
	if err != nil {
		return err
	}
	var own eldest.Candidate
	others := make([]eldest.Candidate, 0, len(line.Queue))
	for _, other := range line.Queue {
		if other.Key == c.key {
			own = other
		} else {
			others = append(others, other)
		}
	}
	switch {
	case own.Token != s.token:
		return fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, line.Revision)
	case len(others) > 0 && c.cfg.GiveWay(own, others):
		return errGiveWay
	}
	return nil
}

// steps counts how often in a row a campaign has given way, so that candidates which
// give way to each other do not do so as fast as etcd can answer.
type steps struct {
	last   time.Time
	row    int
	paused time.Duration // after the last one
}

// often is the time within which two steps are in a row, the pause between them apart.
const often = time.Second

// note takes a step in.
func (n *steps) note(reason error) {
	if !errors.Is(reason, errGiveWay) {
		return
	}
	if n.row++; n.last.IsZero() || time.Since(n.last) > often+n.paused {
		n.row = 0
	}
	n.last = time.Now()
}

// pause is how long to stand at the new place before anything is done.
func (n *steps) pause(backoff retry.Backoff) time.Duration {
	n.paused = 0
	if n.row > 0 {
		n.paused = backoff(n.row - 1)
	}
	return n.paused
}
