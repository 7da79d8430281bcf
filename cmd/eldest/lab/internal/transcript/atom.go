package transcript

import (
	"math"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// atom is what the normal form keeps together: a request and its answer, and the events that
// watches received because of it; or a message without a request.
type atom struct {
	// begin and end are its position among the messages: it comes after every atom that had ended
	// before it began. Invariant: begin <= end.
	begin, end int
	lane       string
	// ask and answer are nil if there is none. The answer may be the end of the call.
	ask, answer *wiretap.Message
	// rev is the revision at which it was answered; 0 means unknown. rank orders the atoms of one
	// revision.
	rev  int64
	rank int
	// watch is the watch that it creates or that is canceled.
	watch watchID
	told  []told
}

// told is an event and the watch that received it.
type told struct {
	at    int
	lane  string
	watch watchID
	event *mvccpb.Event
}

// The ranks of atoms at one revision: the write that made it, messages without a request, watches
// that begin there, and reads.
const (
	rankWrite = iota
	rankOutside
	rankWatch
	rankRead
)

// unanswered is the end of an atom without an answer.
const unanswered = math.MaxInt

// gathering makes atoms from messages.
type gathering struct {
	atoms []*atom
	// open are the atoms of calls that wait for an answer, in order.
	open map[int][]*atom
	// single are the watches on one key, and left those that the client has canceled.
	single map[watchID]string
	left   map[watchID]bool
	// begun are the atoms that made the watches.
	begun map[watchID]*atom
	told  []told
	// renewed has the renewals of leases; granted has the leases that exist.
	renewed map[int64]*renewal
	granted map[int64]bool
	renews  map[string]bool // lanes
}

// renewal is the first renewal of a lease, which represents all of them.
type renewal struct {
	ask, answer wiretap.Message
	// confirmed are the request and the answer by which a client confirms a renewal with a
	// majority, if it does.
	confirmed [2]*wiretap.Message
}

// gather makes atoms. Messages whose times vary are left out: see Normalise.
func gather(messages []wiretap.Message) *gathering {
	g := &gathering{
		open: make(map[int][]*atom), single: make(map[watchID]string), left: make(map[watchID]bool), begun: make(map[watchID]*atom),
		renewed: make(map[int64]*renewal), granted: make(map[int64]bool), renews: make(map[string]bool),
	}
	for i := range messages {
		switch m := &messages[i]; m.Kind {
		case wiretap.Note:
			g.add(&atom{begin: i, end: i, lane: m.Lane, ask: m})
		case wiretap.Request:
			g.request(i, m)
		case wiretap.Answer:
			g.answer(i, m)
		case wiretap.End:
			g.ended(i, m)
		}
	}
	return g
}

func (g *gathering) add(a *atom) { g.atoms = append(g.atoms, a) }

func (g *gathering) request(i int, m *wiretap.Message) {
	a := &atom{begin: i, end: unanswered, lane: m.Lane, ask: m, rank: rankRead}
	switch r := m.Body.(type) {
	case *etcdserverpb.WatchRequest:
		switch u := r.RequestUnion.(type) {
		case *etcdserverpb.WatchRequest_CreateRequest:
			a.rank = rankWatch
		case *etcdserverpb.WatchRequest_CancelRequest:
			g.left[watchID{m.Call, u.CancelRequest.WatchId}] = true
			return
		default:
			return
		}
	case *etcdserverpb.LeaseRevokeRequest:
		g.granted[r.ID] = true
	case *etcdserverpb.LeaseTimeToLiveRequest:
		g.granted[r.ID] = true
	case *etcdserverpb.LeaseKeepAliveRequest:
		g.granted[r.ID] = true
	}
	if m.Lost {
		a.end = i
	}
	g.add(a)
	if !m.Lost {
		g.open[m.Call] = append(g.open[m.Call], a)
	}
}

// answered takes the oldest request of a call that waits for an answer.
func (g *gathering) answered(i int, m *wiretap.Message) *atom {
	waiting := g.open[m.Call]
	if len(waiting) == 0 {
		return nil
	}
	a := waiting[0]
	g.open[m.Call] = waiting[1:]
	a.end, a.answer, a.rev = i, m, revisionOf(m.Body)
	return a
}

func (g *gathering) answer(i int, m *wiretap.Message) {
	if w, ok := m.Body.(*etcdserverpb.WatchResponse); ok {
		g.watched(i, m, w)
		return
	}
	a := g.answered(i, m)
	if a == nil {
		g.add(&atom{begin: i, end: i, lane: m.Lane, answer: m})
		return
	}
	if writes(m.Body) {
		a.rank = rankWrite
	}
	switch r := m.Body.(type) {
	case *etcdserverpb.LeaseGrantResponse:
		g.granted[r.ID] = true
	case *etcdserverpb.LeaseKeepAliveResponse:
		g.renewal(a, r)
	case *etcdserverpb.MemberListResponse:
		g.confirmation(a)
	}
}

// drop removes an atom.
func (g *gathering) drop(a *atom) {
	g.atoms = slices.DeleteFunc(g.atoms, func(one *atom) bool { return one == a })
}

func (g *gathering) watched(i int, m *wiretap.Message, w *etcdserverpb.WatchResponse) {
	id := watchID{m.Call, w.WatchId}
	switch {
	case m.Lost:
	case w.Created:
		a := g.answered(i, m)
		if a == nil {
			return
		}
		a.watch, g.begun[id] = id, a
		if c := a.ask.Body.(*etcdserverpb.WatchRequest).GetCreateRequest(); len(c.GetRangeEnd()) == 0 {
			g.single[id] = string(c.GetKey())
		}
	case len(w.Events) > 0:
		for _, e := range w.Events {
			g.told = append(g.told, told{at: i, lane: m.Lane, watch: id, event: e})
		}
	case w.Canceled && !g.left[id]:
		g.add(&atom{begin: i, end: i, lane: m.Lane, answer: m, watch: id, rank: rankRead})
	}
}

// ended handles the end of a call. The end of a stream is recorded only if it was caused neither by
// the client nor by the end of the client's work.
func (g *gathering) ended(i int, m *wiretap.Message) {
	waiting := g.open[m.Call]
	delete(g.open, m.Call)
	for _, a := range waiting {
		a.end, a.answer = i, m
		if m.Stream && endedByClient(m) {
			a.answer = nil
		}
	}
	if m.Stream && len(waiting) == 0 && !endedByClient(m) {
		g.add(&atom{begin: i, end: i, lane: m.Lane, answer: m})
	}
}
