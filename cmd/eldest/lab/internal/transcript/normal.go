package transcript

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Normalise returns messages in the normal form, which is the same for two runs of one scenario. See
// the package comment for what it omits.
func Normalise(messages []wiretap.Message) []Entry {
	n := &normaliser{names: newNames(messages), groups: map[*wiretap.Message]*group{}}
	for i := range messages {
		n.add(i, &messages[i])
	}
	n.mergeRenewals()
	n.omitRepeated()
	n.attach()
	return n.tell(n.ordered())
}

// normaliser makes the normal form: it collects messages in groups, omits some groups, and tells the
// others in order.
type normaliser struct {
	*names
	calls  calls
	groups map[*wiretap.Message]*group // by their requests
	all    []*group
	events []event
	lanes  []string // in the order of their first messages
}

// group is what stays together: a request, its answer or end, and the events that it caused; or
// another message or event alone.
type group struct {
	lane     string
	messages []*wiretap.Message
	about    *wiretap.Message // the request that they belong to, or that created their watch, if any
	events   []event
	// begin is the number of the first message, and end that of the first message that shows that the
	// request was carried out: its answer, or an event that it caused. Invariant: begin <= end.
	begin, end int
	// revision is that of the store in the answer; 0 means unknown. rank is 0 if the group made this
	// revision, and otherwise 1.
	revision int64
	rank     int
	text     string // of the first message, without the numbers of leases and watches
	canceled bool   // it created a watch that the client canceled
	omitted  bool
}

// request returns the request with which the group began, and answer its answer; nil if there is none.
func (g *group) request() proto.Message {
	if len(g.messages) == 0 || g.messages[0].Kind != wiretap.Request {
		return nil
	}
	return g.messages[0].Body
}

func (g *group) answer() proto.Message {
	if g.request() == nil || len(g.messages) < 2 {
		return nil
	}
	return g.messages[1].Body
}

// exact returns the text of the first message, with etcd's names.
func (g *group) exact() string { return unchanged.entry(g.messages[0], "").Text() }

// event is an event of a watch. number is that of its message.
type event struct {
	*mvccpb.Event
	number  int
	message *wiretap.Message
	watch   *wiretap.Message // the request that created the watch, if it was recorded
}

// add adds a message to its group, or its events to those that are attached later.
func (n *normaliser) add(number int, m *wiretap.Message) {
	if !slices.Contains(n.lanes, m.Lane) {
		n.lanes = append(n.lanes, m.Lane)
	}
	request := n.calls.request(m)
	g := n.groups[request]
	switch r := m.Body.(type) {
	case *etcdserverpb.WatchRequest:
		if r.GetCreateRequest() == nil {
			if g != nil {
				g.canceled = true
			}
			return
		}
	case *etcdserverpb.WatchResponse:
		if m.Lost {
			return
		}
		for _, e := range r.Events {
			n.events = append(n.events, event{e, number, m, request})
		}
		canceledByEtcd := r.Canceled && (g == nil || !g.canceled)
		if !r.Created && !canceledByEtcd {
			return // events, progress, or the answer to a cancel
		}
	}
	if m.Kind == wiretap.End && !endedByEtcd(m, g) {
		return
	}
	if g == nil || !isAnswer(m) {
		g = &group{lane: m.Lane, begin: number, about: request, rank: 1}
		n.all = append(n.all, g)
		if request == m {
			n.groups[m] = g
		}
	}
	g.messages = append(g.messages, m)
	g.end, g.revision = number, revisionOf(m)
	if changes(m.Body) {
		g.rank = 0
	}
	if m.Kind == wiretap.Request && !m.Lost {
		g.end = math.MaxInt // until the answer comes
	}
}

// endedByEtcd reports whether the end of a call of a group (nil: no request of it waits for an answer)
// is due to etcd. It is the client's doing if the client needed no more or did not wait any longer,
// possibly before its request was recorded.
func endedByEtcd(m *wiretap.Message, g *group) bool {
	if g != nil && g.messages[0].Lost {
		return false
	}
	if !m.Stream {
		return g != nil
	}
	switch m.Status.Code() {
	case codes.OK, codes.Canceled, codes.DeadlineExceeded:
		return false
	}
	return true
}

// mergeRenewals moves the first renewal of each lease into the group of its grant, and omits the
// others, also those without an answer: how many there are depends on time. So do the requests to the
// majority in the same lane. Renewals of leases that were granted earlier are told first.
func (n *normaliser) mergeRenewals() {
	grants := map[int64]*group{}
	renewed := map[int64]bool{}
	unconfirmed := map[string][]*group{} // of each lane that renews, those that have a renewal
	for _, g := range n.all {
		switch r := g.request().(type) {
		case *etcdserverpb.LeaseGrantRequest:
			if granted, ok := g.answer().(*etcdserverpb.LeaseGrantResponse); ok {
				grants[granted.ID] = g
			}
		case *etcdserverpb.LeaseKeepAliveRequest:
			answer, ok := g.answer().(*etcdserverpb.LeaseKeepAliveResponse)
			if ok && answer.TTL <= 0 {
				continue // the lease does not exist
			}
			g.omitted = true
			if !ok || renewed[r.ID] {
				continue
			}
			renewed[r.ID] = true
			home := grants[r.ID]
			if home != nil {
				home.messages = append(home.messages, g.messages...)
			} else {
				home, g.omitted = g, false
				g.begin, g.end, g.revision = -1, -1, 0 // before all others, whenever it was
			}
			unconfirmed[g.lane] = append(unconfirmed[g.lane], home)
		case *etcdserverpb.MemberListRequest:
			homes, renews := unconfirmed[g.lane]
			if !renews || !r.Linearizable {
				continue
			}
			g.omitted = true
			if g.answer() != nil {
				for _, home := range homes {
					home.messages = append(home.messages, g.messages...)
				}
				unconfirmed[g.lane] = nil
			}
		}
	}
}

// omitRepeated omits requests that were lost before in the same lane, and reads that a member refused
// because it had not reached their revision, if they were repeated and answered: etcd tells its
// watches of a change a moment before it answers reads at that change's revision.
func (n *normaliser) omitRepeated() {
	lost, answered := map[string]bool{}, map[string]bool{}
	for _, g := range n.all {
		if request := g.lane + " " + g.exact(); g.request() != nil && g.messages[0].Lost {
			g.omitted = g.omitted || lost[request]
			lost[request] = true
		}
	}
	for _, g := range slices.Backward(n.all) {
		request := g.lane + " " + g.exact()
		switch last := g.messages[len(g.messages)-1]; {
		case last.Kind == wiretap.Answer:
			answered[request] = true
		case last.Kind == wiretap.End && last.Status.Code() == codes.OutOfRange:
			g.omitted = g.omitted || answered[request]
		}
	}
}

// attach adds each event to the group that caused it. The events of one revision that no recorded
// request made are a group of their own.
func (n *normaliser) attach() {
	causes := map[int64]*group{}
	for _, g := range n.all {
		if g.rank == 0 {
			causes[g.revision] = g
		}
	}
	// A revocation deletes the keys of the lease, but if there were none, another request made the
	// revision.
	for _, g := range n.all {
		_, revokes := g.request().(*etcdserverpb.LeaseRevokeRequest)
		if revokes && g.revision != 0 && causes[g.revision] == nil {
			causes[g.revision], g.rank = g, 0
		}
	}
	for _, e := range n.events {
		revision := e.Kv.GetModRevision()
		if created := n.groups[e.watch]; created != nil && revision <= created.revision {
			created.events = append(created.events, e) // the watch began in the past
			continue
		}
		cause := causes[revision]
		if cause == nil {
			cause = &group{lane: e.message.Lane, begin: e.number, end: e.number, revision: revision}
			causes[revision] = cause
			n.all = append(n.all, cause)
		}
		if cause.request() != nil && cause.lane == e.message.Lane && n.ownKey(e) {
			continue
		}
		cause.events = append(cause.events, e)
		// A client that received the event may act on it before the answer arrives.
		cause.end = max(cause.begin, min(cause.end, e.number))
	}
}

// ownKey reports whether an event is the deletion of a candidate's key, unless its watch is on a range
// of keys: a candidate that deleted its key itself may have canceled its watch, or not.
func (n *normaliser) ownKey(e event) bool {
	if e.watch != nil && len(e.watch.Body.(*etcdserverpb.WatchRequest).GetCreateRequest().GetRangeEnd()) > 0 {
		return false
	}
	key := string(e.Kv.GetKey())
	_, known := n.leases[key[strings.LastIndexByte(key, '/')+1:]]
	return known && e.Type == mvccpb.Event_DELETE
}

// ordered returns the groups in the order in which they are told: a group that ended before another
// one began is before it, and of all that can be next, it takes the first one by what is the same in
// each run.
func (n *normaliser) ordered() []*group {
	rest := slices.DeleteFunc(n.all, func(g *group) bool { return g.omitted })
	slices.SortStableFunc(rest, func(a, b *group) int { return cmp.Compare(a.begin, b.begin) })
	n.before = revisionsBefore(rest)
	for _, g := range rest {
		if len(g.messages) > 0 {
			g.text = n.entry(g.messages[0], "w").Text()
		}
	}
	var ordered []*group
	for len(rest) > 0 {
		next, firstEnd := 0, math.MaxInt
		for i, g := range rest {
			if g.begin > firstEnd {
				break // as do all that follow
			}
			firstEnd = min(firstEnd, g.end)
			if n.order(g, rest[next]) < 0 {
				next = i
			}
		}
		ordered = append(ordered, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return ordered
}

// order compares two groups of which neither ended before the other one began.
func (n *normaliser) order(a, b *group) int {
	return cmp.Or(
		cmp.Compare(a.revision, b.revision), cmp.Compare(a.rank, b.rank),
		n.orderLanes(a.lane, b.lane), cmp.Compare(a.text, b.text),
	)
}

func (n *normaliser) orderLanes(a, b string) int {
	return cmp.Compare(slices.Index(n.lanes, a), slices.Index(n.lanes, b))
}

// revisionsBefore returns how many revisions the store had before r1, which it had at the first
// message.
func revisionsBefore(groups []*group) int64 {
	first := int64(math.MaxInt64)
	for _, g := range groups {
		at := g.revision
		// A revocation without events may have deleted nothing.
		if changes(g.answer()) || g.rank == 0 && len(g.events) > 0 {
			at--
		}
		if at > 0 {
			first = min(first, at)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return first - 1
}

// tell returns the entries of groups.
func (n *normaliser) tell(groups []*group) []Entry {
	n.numbering = true
	var stand standing
	var entries []Entry
	for _, g := range groups {
		first := len(entries)
		for _, m := range g.messages {
			entries = append(entries, n.entry(m, n.watch(g.about)))
		}
		slices.SortStableFunc(g.events, func(a, b event) int {
			return cmp.Or(n.orderLanes(a.message.Lane, b.message.Lane), cmp.Compare(n.watchNumber(a.watch), n.watchNumber(b.watch)))
		})
		for _, e := range g.events {
			entries = append(entries, n.event(e.message, e.Event, n.watch(e.watch)))
		}
		at := &entries[first]
		if g.answer() != nil {
			at = &entries[first+1]
		}
		at.Gained, at.Gone = stand.change(g, n.text)
	}
	return entries
}
