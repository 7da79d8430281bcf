package participant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// Rules that a participant can be configured not to follow, to show what they are for.
const (
	// Deadline is to stop being certain of a tenure at its deadline, without a message. It is the
	// defect Overstay, except after a resignation.
	Deadline = "deadline"
	// Guard is to write only while the leader's key exists. It is the defect Unguarded.
	Guard = "guard"
	// Owner is to bind each key to the lease of its owner. It is the defect Linger.
	Owner = "owner"
	// Majority is to count a renewal only when a majority of etcd's members has confirmed it.
	Majority = "majority"
	// Clock is to have a clock that runs as fast as etcd's: it runs at half the speed instead.
	Clock = "clock"
)

// Rules lists all rules.
var Rules = []string{Deadline, Guard, Owner, Majority, Clock}

// slow is the rate of a clock without the rule Clock.
const slow = 0.5

// without configures the participant not to follow a rule.
func (p *participant) without(rule string) error {
	switch rule {
	case Deadline:
		p.Defect = Overstay
	case Guard:
		p.Defect = Unguarded
	case Owner:
		p.Defect = Linger
	case Clock:
		p.clock.run(slow)
	}
	if rule != "" && !slices.Contains(Rules, rule) {
		return fmt.Errorf("unknown rule %q", rule)
	}
	return nil
}

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
	if p.Transfers {
		p.serving.Go(func() {
			// It ends with the session. An error before that means that it takes no part, which a
			// transfer reports.
			_ = transfer.Serve(context.Background(), transfer.Config{Candidate: c, Session: s, KV: p.client, Watcher: p.client})
		})
	}
}
