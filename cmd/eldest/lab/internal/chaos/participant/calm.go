package participant

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// A participant that people watch reports that it is certain of its tenure once in calmTold, and in
// addition before and after a pause of calmSilence, and at the end.
const (
	calmTold    = 100 * time.Millisecond
	calmSilence = 50 * time.Millisecond
)

// calmly is the work of a leader that people watch: a guarded write now and then, which is not given
// up while they look at it, and nothing else. If its tenure is ended by others it makes one more
// write: the request that was in flight.
func (p *participant) calmly(t contender.Tenure) {
	for more := true; more; {
		p.write(t, p.TTL, false)
		more = p.pause(t.Context(), p.Calm, p.Calm)
	}
	if !p.endsItself(t) {
		p.write(t, p.TTL, true)
	}
}

// isLeaseGone reports whether a campaign has failed because etcd does not have its lease any more. The
// session finds that out at its next renewal. Until then a participant of a chaos run campaigns again
// and again; people would see many requests that cannot succeed.
func isLeaseGone(err error) bool {
	return errors.Is(err, eldest.ErrSessionLost) || errors.Is(err, rpctypes.ErrLeaseNotFound)
}

// endsItself reports whether a tenure that has ended was given up by its participant.
func (p *participant) endsItself(t contender.Tenure) bool {
	return p.resigns.Load() || errors.Is(context.Cause(t.Context()), eldest.ErrDraining)
}

// made is called with each candidate of Eldest, and its session.
func (p *participant) made(c *election.Candidate, s *lease.Session) {
	if phases := p.phases; phases != nil {
		p.serving.Go(func() { phases.follow(c, s) })
	}
	if p.Calm > 0 {
		p.serving.Go(func() {
			// It ends with the session. An error before that means that it takes no part, which a
			// transfer reports.
			_ = transfer.Serve(context.Background(), transfer.Config{Candidate: c, Session: s, KV: p.client, Watcher: p.client})
		})
	}
}
