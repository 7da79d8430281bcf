package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
	"github.com/eldest-io/eldest/keys"
)

// The ways of a cut.
const (
	bothWays = "both"
	requests = "requests"
	replies  = "replies"
)

// place identifies a message: the member of whose wiretap it is, and its number there.
type place struct {
	member int
	number int64
}

// direction is one of the two directions of a call.
type direction struct {
	call  int
	reply bool
}

// message is a message on its way.
type message struct {
	place
	direction
	id   int64
	kind string // as in feed.Action.Breakpoints
	at   time.Time
	// answer means that it is the answer to a request that may write, end that it is the end of the call.
	answer, end bool

	held    bool // it waits for the user
	decided bool // it is released or dropped
	dropped bool
	told    bool // that it was delivered, or lost
}

// Bounds of what is shown of a message.
const (
	mostBody  = 16 << 10 // bytes of JSON
	mostLines = 100
)

// tap starts a wiretap that begins with a given member.
func (c *candidate) tap(member int) (*wiretap.Proxy, error) {
	t := &tap{of: c, member: member, renewals: map[int]bool{}}
	endpoints := c.in.field.Endpoints()
	return wiretap.Start(wiretap.Config{
		Endpoints: slices.Concat(endpoints[member:], endpoints[:member]), Record: t.record,
		Gate: func(ctx context.Context, w wiretap.Message) bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.pass(ctx, c.coming[place{member, w.Number}])
		},
	})
}

// tap turns the messages between a participant and etcd, through one of its wiretaps, into events.
type tap struct {
	of     *candidate
	member int

	// Only record, which is called for one message at a time, uses these.
	live transcript.Live
	// renewals are the calls, of one request and one answer, that are about a renewal.
	renewals map[int]bool
}

// record adds a message to the log, and keeps it for the gate.
func (t *tap) record(w *wiretap.Message) {
	c, entries := t.of, t.live.Entries(*w)
	kind, method := entries[0].Kind, path.Base(w.Method)
	state := &feed.MessageState{
		ID: c.in.messages.Add(1), Kind: string(kind), Method: method, Text: shortened(entries[0].Text()),
		Call: (w.Call-1)*c.in.cfg.Members + t.member + 1, Renewal: t.renews(w, method),
	}
	if len(entries) > 1 {
		for _, e := range entries[:min(len(entries), mostLines)] {
			state.Lines = append(state.Lines, shortened(e.Text()))
		}
		state.Text += fmt.Sprintf(" (and %d more)", len(entries)-1)
	}
	switch body, err := transcript.Body(*w); {
	case err != nil:
		state.Text += fmt.Sprintf(" (not shown: %v)", err)
	case len(body) > mostBody:
		state.Text += fmt.Sprintf(" (%d bytes of JSON are not shown)", len(body))
	default:
		state.Body = body
	}
	if answer, ok := w.Body.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	}); ok {
		state.Revision = answer.GetHeader().GetRevision()
	}
	c.in.renews(w)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.come(&message{
		place: place{t.member, w.Number}, direction: direction{state.Call, w.Kind != wiretap.Request},
		id: state.ID, kind: method + " " + string(kind), at: time.Now(), end: w.Kind == wiretap.End,
		answer: kind == wiretap.Answer && !w.Stream && !state.Renewal && method != "Range",
	}, state)
}

// renews reports whether a message belongs to the renewal of a lease, or to the heartbeats.
func (t *tap) renews(w *wiretap.Message, method string) bool {
	switch method {
	case "LeaseKeepAlive", "MemberList": // the latter is how Eldest confirms a renewal
		return true
	}
	heartbeats, _ := keys.Heartbeats()
	switch body := w.Body.(type) {
	case *etcdserverpb.PutRequest:
		if strings.HasPrefix(string(body.Key), heartbeats) {
			t.renewals[w.Call] = true
		}
	case *etcdserverpb.WatchResponse:
		return len(body.Events) > 0 && !slices.ContainsFunc(body.Events, func(e *mvccpb.Event) bool {
			return !strings.HasPrefix(string(e.Kv.GetKey()), heartbeats)
		})
	}
	renewal := t.renewals[w.Call]
	if w.Kind != wiretap.Request {
		delete(t.renewals, w.Call)
	}
	return renewal
}

// come notes a message that has reached a wiretap. The caller holds mu.
func (c *candidate) come(m *message, shown *feed.MessageState) {
	c.coming[m.place] = m
	c.in.log.Add(feed.Event{Type: feed.Sent, Who: c.name, Message: shown})
	if c.torn[m.direction] && !m.end {
		c.tell(feed.Lost, m)
	}
}

// tell adds to the log what becomes of a message, once. The caller holds mu.
func (c *candidate) tell(what feed.Type, m *message) {
	if m.told {
		return
	}
	if m.told = what != feed.Held; m.told && m.end {
		delete(c.torn, direction{m.call, false})
		delete(c.torn, direction{m.call, true})
	}
	c.in.log.Add(feed.Event{Type: what, Who: c.name, Message: &feed.MessageState{ID: m.id}})
	c.wake()
}

// tear notes that a message was lost in a network that is cut: what follows it is lost now, and not only
// when the call ends. Nothing follows the end of a call. The caller holds mu.
func (c *candidate) tear(m *message) {
	if m.end {
		return
	}
	c.torn[m.direction] = true
	older := func(a, b *message) int { return cmp.Compare(a.id, b.id) }
	for _, other := range slices.SortedFunc(maps.Values(c.coming), older) {
		if other.direction == m.direction && !other.end {
			c.tell(feed.Lost, other)
		}
	}
}

// pass blocks until it is decided what becomes of a message, and reports whether it is passed on. A message is
// late, then waits to be released, and then it arrives or is lost. ctx is that of its call. The caller holds
// mu, which is unlocked while pass blocks.
func (c *candidate) pass(ctx context.Context, m *message) bool {
	defer delete(c.coming, m.place)
	if m.end && ctx.Err() != nil { // the client, or a message that was lost, has ended the call
		c.tell(feed.Delivered, m)
		return true
	}
	for left := c.late(m); left > 0 && ctx.Err() == nil; left = c.late(m) {
		delay := c.state.DelayMS
		limited, cancel := context.WithTimeout(ctx, left)
		_ = c.await(limited, func() bool { return c.state.DelayMS != delay })
		cancel()
	}
	if c.holds(m) && ctx.Err() == nil {
		m.held = true
		c.tell(feed.Held, m)
		_ = c.await(ctx, func() bool { return m.decided }) // the end of ctx is seen below
		m.held = false
	}
	switch {
	case ctx.Err() != nil, m.dropped:
		c.tell(feed.Lost, m)
		return false
	case c.state.LoseReply && m.answer:
		c.tell(feed.Lost, m)
		c.state.LoseReply = false
		c.show()
		return false
	case c.cuts(m):
		// The call ends when the network is healed, and not before.
		c.tell(feed.Lost, m)
		c.tear(m)
		_ = c.await(ctx, func() bool { return !c.cuts(m) })
		return false
	}
	c.tell(feed.Delivered, m)
	return true
}

// holds reports whether a message is to wait for the user.
func (c *candidate) holds(m *message) bool {
	return c.state.Hold || slices.Contains(c.state.Breakpoints, m.kind)
}

// cuts reports whether a message cannot arrive.
func (c *candidate) cuts(m *message) bool {
	switch c.state.Cut {
	case bothWays:
		return true
	case requests:
		return !m.reply
	case replies:
		return m.reply
	}
	return false
}

// late returns how long a message has to wait for. What it has waited for already counts.
func (c *candidate) late(m *message) time.Duration {
	return time.Until(m.at.Add(milliseconds(c.state.DelayMS)))
}

// decide releases or drops the oldest held message that matches, and returns it; nil if there is none. The
// caller holds mu.
func (c *candidate) decide(match func(*message) bool, release bool) (oldest *message) {
	for _, m := range c.coming {
		if m.held && !m.decided && match(m) && (oldest == nil || m.id < oldest.id) {
			oldest = m
		}
	}
	if oldest != nil {
		oldest.decided, oldest.dropped = true, !release
		c.wake()
	}
	return oldest
}

// onNetwork is the deed of an action on a participant's network. Its effect is immediate: what decides
// about the messages is in this process.
func onNetwork(change func(*feed.ParticipantState, feed.Action)) deed {
	return deed{aParticipant, notLeft, func(t *task) error {
		t.c.change(func(p *feed.ParticipantState) { change(p, t.Action) })
		return nil
	}}
}

const (
	// matchTime is how long an action waits for a message that it could be about.
	matchTime = 5 * time.Second
	// lateTime is how long the messages of a participant that has ended may be late: those that end its
	// calls. A participant that gets another rule is dead for a moment as well.
	lateTime = 500 * time.Millisecond
)

// decide has a held message passed on or lost, and blocks until that was reported.
func (t *task) decide(release bool) error {
	choose := t.awaitHeld
	if t.Message != 0 {
		choose = t.held
	}
	m, err := choose(release)
	if err != nil {
		return err
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.await(t.ctx, func() bool { return m.told })
}

// held decides about the message with the action's number. The action is recorded so that it can be played
// again, when messages have other numbers.
func (t *task) held(release bool) (*message, error) {
	for _, c := range t.era.all() {
		c.mu.Lock()
		m := c.decide(func(m *message) bool { return m.id == t.Message }, release)
		c.mu.Unlock()
		if m != nil {
			t.c, t.On, t.Match, t.Message = c, c.name, m.kind, 0
			return m, nil
		}
	}
	return nil, feed.Refused("message %d is not held: it was released or dropped, or its call has ended", t.Message)
}

// awaitHeld decides about the oldest held message of the action's participant and kind, for which it waits.
func (t *task) awaitHeld(release bool) (m *message, err error) {
	c, none := t.c, feed.Refused("no message of %s is held", t.On)
	if t.Match != "" {
		none = feed.Refused("no message %q of %s is held", t.Match, t.On)
	}
	waiting, cancel := context.WithTimeoutCause(t.ctx, matchTime, none)
	defer cancel()
	alive := time.Now() // when its process was last seen
	err = inject.Until(waiting, "a message is held", func(context.Context) (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		m = c.decide(func(m *message) bool { return t.Match == "" || t.Match == m.kind }, release)
		refused := permit(c.name, c.state.Life, notDead)
		if refused == nil {
			alive = time.Now()
		}
		if m == nil && time.Since(alive) > lateTime {
			return true, refused
		}
		return m != nil, nil
	})
	if errors.Is(err, none) {
		err = none
	}
	return m, err
}
