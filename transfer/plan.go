package transfer

import (
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest"
)

// Order determines what happens to the candidates that do not lead.
type Order uint8

const (
	// Keep keeps the order of all candidates except the target and the leader. If the target is not
	// the next candidate, all others requeue once.
	Keep Order = iota
	// PassBy has only the candidates between the leader and the target requeue; those behind the
	// target are in front of them after that.
	PassBy
)

// String returns "keep" or "pass-by".
func (o Order) String() string {
	if o == PassBy {
		return "pass-by"
	}
	return "keep"
}

// ParseOrder parses the result of String. The error wraps eldest.ErrInvalid.
func ParseOrder(s string) (Order, error) {
	for _, o := range []Order{Keep, PassBy} {
		if s == o.String() {
			return o, nil
		}
	}
	return 0, fmt.Errorf("%w: the order %.64q is neither keep nor pass-by", eldest.ErrInvalid, s)
}

// Defaults of Options.
const (
	// DefaultTimeout bounds the wait for each answer.
	DefaultTimeout = 5 * time.Second
	// DefaultDrain bounds the wait for the deletion of the drained leader's key.
	DefaultDrain = time.Minute
)

// Options set how leadership is to be handed over. The zero value is ready to use.
type Options struct {
	// Order determines what happens to the other candidates.
	Order Order
	// Timeout bounds the wait for the answer of each candidate that is asked. 0 means
	// DefaultTimeout.
	Timeout time.Duration
	// Drain bounds the wait for the deletion of the drained leader's key, which is deleted when its
	// lead function has returned. 0 means DefaultDrain.
	Drain time.Duration
	// ShouldYield, if not nil, is the candidates' election.Config.ShouldYield: a plan in which the
	// target would yield instead of leading is refused. The leader is not counted: it is behind the
	// target if it comes back. ShouldYield must be quick and pure.
	ShouldYield func(own eldest.Candidate, others []eldest.Candidate) bool
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Order > PassBy:
		return o, fmt.Errorf("%w: Options.Order %d", eldest.ErrInvalid, o.Order)
	case o.Timeout < 0, o.Drain < 0:
		return o, fmt.Errorf("%w: Options.Timeout %v or Drain %v is negative", eldest.ErrInvalid, o.Timeout, o.Drain)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Drain == 0 {
		o.Drain = DefaultDrain
	}
	return o, nil
}

// Plan is a transfer that is possible.
type Plan struct {
	Election string
	// Revision is the revision of the Queue that it was made from.
	Revision int64
	Order    Order
	// Leader drains, and Target leads next.
	Leader, Target eldest.Candidate
	// Back are the candidates that requeue before that, in this order; none if the target is the
	// next candidate.
	Back []eldest.Candidate
	// Overtaken are the candidates that were behind those in Back and are in front of them
	// afterwards; only with PassBy.
	Overtaken []eldest.Candidate
	// Foreign is the Queue's.
	Foreign []string

	// asked are the members of Back and, last, the leader; target is the member of Target.
	asked  []Member
	target Member
}

// Plan returns how leadership would be handed over to the candidate with the given key. It is a pure
// function and sends nothing. The error is a *Refusal, or wraps eldest.ErrInvalid.
func (q Queue) Plan(target string, options Options) (Plan, error) {
	options, err := options.withDefaults()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Election: q.Election, Revision: q.Revision, Order: options.Order, Foreign: q.Foreign}
	refuse := func(reason Reason, who ...Member) (Plan, error) {
		return p, &Refusal{Reason: reason, Who: candidates(who)}
	}
	if len(q.Members) == 0 {
		return refuse(NoLeader)
	}
	leader := q.Members[0]
	p.Leader = leader.Candidate
	at := slices.IndexFunc(q.Members, func(m Member) bool { return m.Key == target })
	if at < 0 {
		return refuse(UnknownTarget)
	}
	p.Target, p.target = q.Members[at].Candidate, q.Members[at]
	if at == 0 {
		return refuse(AlreadyLeads, leader)
	}
	between, behind := q.Members[1:at], q.Members[at+1:]
	if others := candidates(slices.Concat(between, behind)); options.ShouldYield != nil && options.ShouldYield(p.Target, others) {
		return refuse(Outranked, p.target)
	}
	back := between
	if len(between) > 0 && options.Order == Keep {
		back = slices.Concat(between, behind)
	}
	switch deaf := func(m Member) bool { return !m.TakesPart }; {
	case !leader.TakesPart:
		return refuse(LeaderTakesNoPart, leader)
	case slices.ContainsFunc(between, deaf):
		return refuse(Between, filter(between, deaf)...)
	case slices.ContainsFunc(back, deaf):
		return refuse(Behind, filter(behind, deaf)...)
	}
	p.asked = append(slices.Clone(back), leader)
	// Oldest first, as Refusal.Who is.
	if busy := filter(slices.Concat(q.Members[:1], back), func(m Member) bool { return m.Pending }); len(busy) > 0 {
		return refuse(Busy, busy...)
	}
	p.Back = candidates(back)
	if len(between) > 0 && options.Order == PassBy {
		p.Overtaken = candidates(behind)
	}
	return p, nil
}

func filter(members []Member, want func(Member) bool) []Member {
	var some []Member
	for _, m := range members {
		if want(m) {
			some = append(some, m)
		}
	}
	return some
}

func candidates(members []Member) []eldest.Candidate {
	var all []eldest.Candidate
	for _, m := range members {
		all = append(all, m.Candidate)
	}
	return all
}
