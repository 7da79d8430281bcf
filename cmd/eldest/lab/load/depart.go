package load

import (
	"context"
	"errors"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
)

// depart has a waiter leave, and looks at how its campaign ended. It may have won in the
// meantime; then it leaves as a leader.
func (p *participant) depart(ctx context.Context, o order) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), p.scale.patience())
	defer stop()
	begun := time.Now()
	var want []error
	var err error
	switch o {
	case withdraw:
		err, want = p.candidate.Withdraw(ctx), []error{eldest.ErrWithdrawn}
	case cancel:
		p.giveUp()
		want = []error{context.Canceled}
	case closing:
		err, want = p.session.Close(ctx), []error{eldest.ErrClosed}
	case crash:
		p.gone(true)
		p.session.Abandon()
		want = []error{eldest.ErrClosed}
	case evict:
		key := p.candidate.Key()
		p.tell(oracle.Event{Kind: oracle.Removed, Token: int64(p.token), Key: key})
		err = election.Evict(ctx, p.admin, candidates, eldest.Candidate{Key: key, Token: p.token})
		want = []error{eldest.ErrDeposed}
	}
	if errors.Is(err, eldest.ErrLeading) || errors.Is(err, eldest.ErrNotRegistered) {
		err = nil // it has won meanwhile, or a fault was quicker: the campaign says which
	}
	p.must(ctx, string(o), err)
	select {
	case end := <-p.result:
		p.departed(o, begun, end, want)
	case <-ctx.Done():
		p.book.late("stuck: a campaign goes on %v after its end: %s", p.scale.patience(), o)
	}
}

// departed judges how a waiter's campaign ended.
func (p *participant) departed(o order, begun time.Time, end outcome, want []error) {
	if end.err == nil && (o == withdraw || o == cancel) {
		p.departs(end.Leadership, resign)
		return
	}
	p.book.took("departure: "+string(o), time.Since(begun))
	p.book.count("departures: " + string(o))
	p.book.count("departures")
	if end.err == nil { // a tenure, which is over or about to be
		return
	}
	for _, w := range want {
		if errors.Is(end.err, w) {
			return
		}
	}
	if errors.Is(end.err, eldest.ErrSessionLost) || errors.Is(end.err, eldest.ErrDeposed) {
		p.book.failed("await", end.err) // a fault was quicker
		return
	}
	p.book.violation("%s: the campaign ended with %v", o, end.err)
}

// departs has a leader leave.
func (p *participant) departs(l *election.Leadership, o order) {
	ctx, stop := context.WithTimeout(context.Background(), p.scale.patience())
	defer stop()
	begun := time.Now()
	var err error
	switch o {
	case leaderCrash:
		p.gone(true)
		p.session.Abandon()
	case leaderClose:
		err = p.session.Close(ctx)
	default:
		p.write(l)
		begun = time.Now()
		if err = l.Resign(ctx); errors.Is(err, eldest.ErrNotLeading) {
			p.book.failed("tenure", err) // a fault was quicker
			err = nil
		}
	}
	p.must(ctx, string(o), err)
	if l.Err() == nil {
		p.book.violation("%s: the tenure %d goes on", o, l.Token())
	}
	p.book.took("departure: "+string(o), time.Since(begun))
	p.book.count("departures: " + string(o))
	p.book.count("departures")
}
