package sandbox

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
	"github.com/eldest-io/eldest/keys"
)

// Bounds of what is shown of a message.
const (
	mostBody  = 16 << 10 // bytes of JSON
	mostLines = 100
	mostText  = 4 << 10 // bytes of a line
)

// tap turns the messages between a participant and etcd, through one of its wiretaps, into events.
type tap struct {
	*wiretap.Proxy
	of *candidate
	// index is the number of the wiretap among so many of the participant.
	index, all int

	// Only record, which is called for one message at a time, uses these.
	live transcript.Live
	// renewals are the calls, of one request and one answer, that are about a renewal.
	renewals map[int]bool

	mu sync.Mutex
	// coming are the messages that were recorded and have not reached the gate, by their numbers.
	coming map[int64]message
	// torn are the directions of calls in which a message was lost, until the call ends: see tear.
	torn map[direction]bool
}

// direction is one direction of a call.
type direction struct {
	call  int
	reply bool
}

func (m message) direction() direction { return direction{m.call, m.reply} }

// newTap starts a wiretap that begins with a given member.
func newTap(of *candidate, index int, endpoints []string) (*tap, error) {
	t := &tap{of: of, index: index, all: len(endpoints), renewals: map[int]bool{}, coming: map[int64]message{}, torn: map[direction]bool{}}
	var turned []string
	for i := range endpoints {
		turned = append(turned, endpoints[(index+i)%len(endpoints)])
	}
	var err error
	t.Proxy, err = wiretap.Start(wiretap.Config{Endpoints: turned, Record: t.record, Gate: t.gate})
	return t, err
}

// record adds a message to the log.
func (t *tap) record(recorded *wiretap.Message) {
	m := *recorded
	entries := t.live.Entries(m)
	kind, method := entries[0].Kind, path.Base(m.Method)
	state := &feed.MessageState{
		ID: t.of.in.nextMessage(), Kind: string(kind), Method: method,
		Call: (m.Call-1)*t.all + t.index + 1, Renewal: t.renews(m, method),
	}
	for _, e := range entries[:min(len(entries), mostLines)] {
		state.Lines = append(state.Lines, shortened(e.Text()))
	}
	if state.Text = state.Lines[0]; len(entries) == 1 {
		state.Lines = nil
	} else {
		state.Text += fmt.Sprintf(" (and %d more)", len(entries)-1)
	}
	switch body, err := transcript.Body(m); {
	case err != nil:
		state.Text += fmt.Sprintf(" (not shown: %v)", err)
	case len(body) > mostBody:
		state.Text += fmt.Sprintf(" (%d bytes of JSON are not shown)", len(body))
	default:
		state.Body = body
	}
	if answer, ok := m.Body.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	}); ok {
		state.Revision = answer.GetHeader().GetRevision()
	}
	t.of.in.queue.renewal(m)

	reply := m.Kind != wiretap.Request
	t.come(m.Number, state, message{
		id: state.ID, at: time.Now(), kind: method + " " + string(kind), reply: reply, end: m.Kind == wiretap.End,
		answer: kind == wiretap.Answer && !m.Stream && !state.Renewal && method != "Range",
		tap:    t, call: m.Call,
	})
	if reply && !state.Renewal {
		t.of.in.queue.look() // it may be the answer to a change, or the event of one
	}
}

// come adds a message to the log, and keeps it for the gate.
func (t *tap) come(number int64, state *feed.MessageState, m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of.in.log.Add(feed.Event{Type: feed.Sent, Who: t.of.name, Message: state})
	if m.told = t.torn[m.direction()] && !m.end; m.told {
		t.outcome(feed.Lost, m)
	}
	t.coming[number] = m
}

// tell adds to the log what happens to a message.
func (t *tap) tell(what feed.Type, m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !m.told {
		t.outcome(what, m)
	}
	if m.end {
		delete(t.torn, direction{m.call, true})
		delete(t.torn, direction{m.call, false})
	}
}

// tear is called when a message is lost and its call goes on. All that follows it in its direction is
// lost as well, and does not reach the gate before the call ends: so that is told here.
func (t *tap) tear(m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.end {
		return
	}
	t.torn[m.direction()] = true
	for _, number := range slices.Sorted(maps.Keys(t.coming)) {
		if other := t.coming[number]; other.direction() == m.direction() && !other.end {
			other.told = true
			t.coming[number] = other
			t.outcome(feed.Lost, other)
		}
	}
}

// outcome adds what happens to a message to the log.
func (t *tap) outcome(what feed.Type, m message) {
	t.of.in.log.Add(feed.Event{Type: what, Who: t.of.name, Message: &feed.MessageState{ID: m.id}})
}

// gate decides whether a message is passed on.
func (t *tap) gate(ctx context.Context, m wiretap.Message) bool {
	t.mu.Lock()
	coming := t.coming[m.Number]
	delete(t.coming, m.Number)
	t.mu.Unlock()
	return t.of.gate.pass(ctx, coming)
}

// renews reports whether a message belongs to the renewal of a lease, or to the heartbeats.
func (t *tap) renews(m wiretap.Message, method string) bool {
	switch method {
	case "LeaseKeepAlive", "MemberList": // the latter is how Eldest confirms a renewal
		return true
	}
	heartbeats, _ := keys.Heartbeats()
	switch body := m.Body.(type) {
	case *etcdserverpb.PutRequest:
		if strings.HasPrefix(string(body.Key), heartbeats) {
			t.renewals[m.Call] = true
		}
	case *etcdserverpb.WatchResponse:
		for _, e := range body.Events {
			if !strings.HasPrefix(string(e.Kv.GetKey()), heartbeats) {
				return false
			}
		}
		return len(body.Events) > 0
	}
	renewal := t.renewals[m.Call]
	if m.Kind != wiretap.Request {
		delete(t.renewals, m.Call)
	}
	return renewal
}

// shortened returns a text of bounded length.
func shortened(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…"
}
