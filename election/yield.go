package election

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/txn"
)

// ByPriority returns a Config.ShouldYield with which the candidate of the highest priority leads: a
// candidate yields while another one exists whose value has a strictly higher priority. priority
// reads the priority from a candidate's value, its own included; it must be the same function of
// the value for all candidates, quick, and safe for concurrent use. It chooses the priority of
// values that it cannot read.
//
// Yielding ends: a candidate that yields requeues behind a strictly better one, which moves up by
// one, and the best candidate never yields; equal ones lead in their order. Not guaranteed: that
// the best candidate leads. A leader does not yield to a better one that comes later (package
// transfer hands over), and candidates without this option lead when they are the oldest. Nor is it
// fair: while better ones exist a worse one never leads. A better one that hangs while its key
// exists is waited for until its lease expires.
//
// Each time that a candidate yields costs two requests, and it yields at most once for each better
// one that registers. A candidate that is to yield for the third time in a row, with less than a
// second between two, first waits until the pause of Config.Backoff since the last time is over,
// and then calls ShouldYield again: no candidate leads during the rest of that pause.
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

// survey reports whether the candidate, which is the oldest, is to requeue instead of leading. If
// wait is positive it is too soon for that, and survey is to be called again after wait.
func (n *steps) survey(ctx context.Context, token eldest.Token) (yield bool, wait time.Duration, revision int64, err error) {
	yield, revision, err = n.c.outranked(ctx, token)
	n.c.lock()
	defer n.c.unlock()
	if yield {
		if wait = max(0, time.Until(n.until)); wait == 0 {
			n.note()
		}
	}
	return yield, wait, revision, err
}

// outranked reports whether another candidate is to lead instead.
func (c *Candidate) outranked(ctx context.Context, token eldest.Token) (outranked bool, revision int64, err error) {
	line, err := txn.ReadSnapshot(ctx, c.cfg.KV, c.cfg.Election)
	if err != nil {
		return false, 0, err
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
	if own.Token != token {
		return false, 0, fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, line.Revision)
	}
	return len(others) > 0 && c.cfg.ShouldYield(own, others), line.Revision, nil
}

// steps counts how often in a row a campaign has yielded, so that candidates that yield to each
// other do not do so as fast as etcd can answer.
//
// The mutex guards row and until.
type steps struct {
	c     *Candidate
	row   int
	until time.Time // the earliest time of the next yield; that of the last one if there is no pause
}

const (
	// often is the time within which two yields are in a row, not counting the pause between them.
	often = time.Second
	// quick is the number of yields in a row without a pause: better candidates may come and go,
	// and while a worse one pauses in front of them there is no leader.
	quick = 2
)

// note counts a yield.
func (n *steps) note() {
	now := time.Now()
	if n.row++; now.Sub(n.until) > often {
		n.row = 1
	}
	if n.until = now; n.row >= quick {
		n.until = now.Add(n.c.cfg.Backoff(n.row - quick))
	}
}
