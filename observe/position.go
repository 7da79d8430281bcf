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
	return &Positions{election: o.cfg.Election, reader: o.positions.Reader()}
}

// Positions reads the positions of an observer's Config.Key. It is for one goroutine at a time;
// many readers of one observer are independent.
type Positions struct {
	election string
	reader   *latest.Reader[Position]
}

// Next is Subscription.Next, and also returns when only Ahead has changed: an older candidate has
// left, or the key was created or deleted.
func (p *Positions) Next(ctx context.Context) (Position, error) {
	if ctx == nil {
		return Position{Ahead: -1}, failed("observe", p.election, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	position, err := p.reader.Next(ctx)
	if err != nil {
		position.Ahead = -1
	}
	position.State = unshared(position.State)
	return position, err
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

// place makes a state and the position in it the newest position, unless it changes nothing.
func (o *Observer) place(state eldest.State, ahead int) {
	if last, ok := o.positions.Get(); ok && last.Ahead == ahead && same(last.State, state) {
		return
	}
	o.positions.Set(Position{State: state, Ahead: ahead})
}

// same reports whether two states are known and have the same leader, with the same value. Keys that
// were put manually in one transaction have the same token.
func same(a, b eldest.State) bool {
	return a.Kind != eldest.Unknown && a.Kind == b.Kind &&
		a.Leader.Key == b.Leader.Key && a.Leader.Token == b.Leader.Token && a.Leader.ModRevision == b.Leader.ModRevision
}
