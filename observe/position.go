package observe

import (
	"bytes"
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/latest"
)

// Position is a state, and the position of Config.Key in the queue at the same revision.
type Position struct {
	eldest.State
	// Ahead is the number of candidates older than Config.Key: 0 if that key is the leader's, 1 if
	// it is next. It is -1 if the key is not in the queue, if Config.Key is empty, and while the
	// state is Unknown.
	Ahead int
}

// Positions returns a reader that has not returned any position yet. It needs no goroutine and no
// clean-up, and sends nothing to etcd: the observer's watch receives each change of the queue.
func (o *Observer) Positions() *Positions {
	return &Positions{election: o.cfg.Election, reader: o.cell.Reader()}
}

// Positions reads the positions of an observer's Config.Key. It is for one goroutine at a time;
// many readers of one observer are independent.
type Positions struct {
	election string
	reader   *latest.Reader[report]
}

// Next is Subscription.Next, and also returns when only Ahead has changed: an older candidate has
// left, or the key was created or deleted.
func (p *Positions) Next(ctx context.Context) (Position, error) {
	if ctx == nil {
		return Position{Ahead: -1}, failed("observe", p.election, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	newest, err := p.reader.Next(ctx)
	if err != nil {
		return Position{Ahead: -1}, err
	}
	return Position{State: unshared(newest.State), Ahead: newest.Ahead}, nil
}

// ahead returns how many candidates in the view are older than Config.Key; -1 if it is not in it.
func (o *Observer) ahead() int {
	if o.cfg.Key == "" {
		return -1
	}
	for i, kv := range o.view.Queue {
		if bytes.Equal(kv.Key, []byte(o.cfg.Key)) {
			return i
		}
	}
	return -1
}

// report is what an observer's readers receive.
type report struct {
	Position
	// number counts the states: a report in which only Ahead is new has the number of the last one.
	number int
}

// report makes a state and the position in it the newest ones, unless they change nothing.
func (o *Observer) report(state eldest.State, ahead int) {
	last, ok := o.cell.Get()
	next := report{Position{State: state, Ahead: ahead}, last.number}
	switch {
	case !ok || !same(last.State, state):
		next.number++
	case last.Ahead == ahead:
		return
	}
	o.cell.Set(next)
}

// same reports whether two states are known and have the same leader, with the same value. Keys that
// were put manually in one transaction have the same token.
func same(a, b eldest.State) bool {
	return a.Kind != eldest.Unknown && a.Kind == b.Kind &&
		a.Leader.Key == b.Leader.Key && a.Leader.Token == b.Leader.Token && a.Leader.ModRevision == b.Leader.ModRevision
}
