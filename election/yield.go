package election

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/txn"
)

// ByPriority returns a Config.ShouldYield for candidates of which the best one is to lead:
// it yields while somebody else stands whose value has a strictly higher priority.
// priority reads it from a candidate's value, the own one's too; it must be the same
// function of the value for all candidates, quick, and safe for concurrent use. Values
// that it cannot read it ranks as it likes.
//
// It comes to an end: whoever yields enters behind somebody strictly better, who then
// is nearer by one, and the best one never yields; equal ones lead in their order.
// Not promised: that the best one leads. Nobody who leads yields to a better one that
// comes later (package transfer hands over), and candidates without this option lead when
// it is their turn. Nor is it fair: while better ones stand a worse one never leads. A
// better one that hangs while its key stands is waited for until its lease expires. Each
// passing over costs two requests, and each candidate yields at most once for each
// better one that comes to stand. One that is to yield for the third time in a row,
// with less than a second between two, waits first, for as long as Config.Backoff says
// since the last time, and asks again: nobody leads in what is left of that when its turn
// has come.
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

// survey says whether the candidate, which is the oldest, is to requeue instead of
// leading; wait: it is too soon for that, and is to be asked again then.
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

// outranked asks whether somebody is to lead instead of the candidate.
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

// steps counts how often in a row a campaign has yielded, so that candidates which
// yield to each other do not do so as fast as etcd can answer.
//
// The mutex guards row and until.
type steps struct {
	c     *Candidate
	row   int
	until time.Time // it yields again no sooner; when it last did, if at once
}

const (
	// often is the time within which two steps are in a row, the pause between them
	// apart.
	often = time.Second
	// quick is how many in a row are taken without a pause: better ones may come and
	// go, and each second in which a worse one pauses in front of them has no leader.
	quick = 2
)

// note takes a step in.
func (n *steps) note() {
	now := time.Now()
	if n.row++; now.Sub(n.until) > often {
		n.row = 1
	}
	if n.until = now; n.row >= quick {
		n.until = now.Add(n.c.cfg.Backoff(n.row - quick))
	}
}
