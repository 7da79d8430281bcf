package transcript

import (
	"cmp"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// endedByClient reports whether a call ended because the client needed no more, or did not wait any
// longer.
func endedByClient(m *wiretap.Message) bool {
	switch m.Status.Code() {
	case codes.OK, codes.Canceled, codes.DeadlineExceeded:
		return true
	}
	return false
}

// renewal merges the renewals of a lease into one. An answer for a lease that does not exist stays
// where it is.
func (g *gathering) renewal(a *atom, r *etcdserverpb.LeaseKeepAliveResponse) {
	if r.TTL <= 0 {
		return
	}
	g.drop(a)
	g.renews[a.lane] = true
	if g.renewed[r.ID] == nil {
		g.renewed[r.ID] = &renewal{ask: *a.ask, answer: *a.answer}
	}
}

// confirmation merges the request that follows a renewal.
func (g *gathering) confirmation(a *atom) {
	if !g.renews[a.lane] {
		return
	}
	g.drop(a)
	for _, r := range g.renewed {
		if r.ask.Lane == a.lane && r.confirmed[0] == nil {
			r.confirmed = [2]*wiretap.Message{a.ask, a.answer}
		}
	}
}

// unanswered drops renewals without an answer, and all but the first of equal requests of one lane
// that were lost: such a request is sent again and again.
func (g *gathering) unanswered() {
	lost := make(map[string]bool)
	g.atoms = slices.DeleteFunc(g.atoms, func(a *atom) bool {
		if a.ask == nil {
			return false
		}
		if a.ask.Lost {
			what := a.lane + " " + g.masked(a)
			if lost[what] {
				return true
			}
			lost[what] = true
		}
		if r, ok := a.ask.Body.(*etcdserverpb.LeaseKeepAliveRequest); ok {
			answer, _ := answerOf(a).(*etcdserverpb.LeaseKeepAliveResponse)
			return answer == nil || answer.TTL > 0 || r == nil
		}
		_, confirms := a.ask.Body.(*etcdserverpb.MemberListRequest)
		return confirms && g.renews[a.lane] && answerOf(a) == nil
	})
}

// repeated leaves out reads that a member refused, because it had not reached their revision, if
// the same lane asked the same again and was answered. Whether that happens depends on chance: etcd
// tells its watches of a change a moment before it answers reads at that change's revision.
func (g *gathering) repeated() {
	var answered []*atom // from the end backwards
	for i := len(g.atoms) - 1; i >= 0; i-- {
		a := g.atoms[i]
		read, reads := requestOf(a).(*etcdserverpb.RangeRequest)
		switch {
		case !reads || a.answer == nil:
		case a.answer.Kind == wiretap.Answer:
			answered = append(answered, a)
		case a.answer.Status.Code() == codes.OutOfRange && slices.ContainsFunc(answered, func(later *atom) bool {
			return later.lane == a.lane && proto.Equal(later.ask.Body, read)
		}):
			g.drop(a)
		}
	}
}

// requestOf returns the request's message, or nil.
func requestOf(a *atom) proto.Message {
	if a.ask == nil {
		return nil
	}
	return a.ask.Body
}

// answerOf returns the answer's message, or nil.
func answerOf(a *atom) proto.Message {
	if a.answer == nil {
		return nil
	}
	return a.answer.Body
}

// entries returns a renewal's entries, which come directly after the grant of its lease.
func (r *renewal) entries(n *normal) []Entry {
	messages := []*wiretap.Message{&r.ask, &r.answer, r.confirmed[0], r.confirmed[1]}
	var entries []Entry
	for _, m := range messages {
		if m != nil {
			entries = append(entries, say(*m, "", n)...)
		}
	}
	return entries
}

// older returns the renewals of leases that were granted before the first message; they come first.
func (g *gathering) older(atoms []*atom) []*renewal {
	left := maps.Clone(g.renewed)
	for _, a := range atoms {
		if granted, ok := answerOf(a).(*etcdserverpb.LeaseGrantResponse); ok {
			delete(left, granted.ID)
		}
	}
	return slices.SortedFunc(maps.Values(left), func(a, b *renewal) int { return cmp.Compare(a.ask.Call, b.ask.Call) })
}
