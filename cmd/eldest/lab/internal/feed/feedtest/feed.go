package feedtest

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Feed is a log, for a test, which fails when what is awaited does not come in time.
type Feed struct {
	T  testing.TB
	Of *feed.Log
}

// All returns all events so far, without the newest ones if there are too many.
func (f Feed) All() []feed.Event {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	all, _ := f.Of.After(ctx, 0, feed.Capacity) // without events it returns an error at once
	return all
}

// Seq returns the number of the newest event; 0 if there is none.
func (f Feed) Seq() int64 { return f.Newest(func(feed.Event) bool { return true }).Seq }

// Find returns the first event after since for which is returns true.
func (f Feed) Find(since int64, is func(feed.Event) bool) (feed.Event, bool) {
	all := f.All()
	i := slices.IndexFunc(all, func(e feed.Event) bool { return e.Seq > since && is(e) })
	if i < 0 {
		return feed.Event{}, false
	}
	return all[i], true
}

// Newest returns the newest event for which is returns true; the zero Event if there is none.
func (f Feed) Newest(is func(feed.Event) bool) feed.Event {
	for _, e := range slices.Backward(f.All()) {
		if is(e) {
			return e
		}
	}
	return feed.Event{}
}

// Await waits for an event after since.
func (f Feed) Await(since int64, what string, is func(feed.Event) bool) (found feed.Event) {
	f.T.Helper()
	etcdtest.Eventually(f.T, func() (ok bool) { found, ok = f.Find(since, is); return ok }, "the feed: %s", what)
	return found
}

// Acted waits until an action was done after since, which must not have failed.
func (f Feed) Acted(since int64, do string) feed.Event {
	f.T.Helper()
	e := f.Await(since, do+" is done", func(e feed.Event) bool { return e.Type == feed.Acted && e.Action.Do == do })
	require.Empty(f.T, e.Error, "%s failed: %+v", do, *e.Action)
	return e
}

// Participant returns the newest state of a participant; the zero state if it has none.
func (f Feed) Participant(who string) (state feed.ParticipantState) {
	e := f.Newest(func(e feed.Event) bool { return e.Type == feed.Participant && e.Who == who })
	if e.Participant != nil {
		state = *e.Participant
	}
	return state
}

// Members returns the newest states of etcd's members.
func (f Feed) Members() []feed.MemberState {
	return f.Newest(func(e feed.Event) bool { return e.Type == feed.Members }).Members
}

// Queue returns the newest queue of an election, "" for any; nil if there is none.
func (f Feed) Queue(election string) *feed.QueueState {
	return f.Newest(func(e feed.Event) bool {
		return e.Type == feed.Queue && (election == "" || e.Queue.Election == election)
	}).Queue
}

// Places returns the keys of the newest queue.
func (f Feed) Places(election string) []feed.PlaceState {
	if q := f.Queue(election); q != nil {
		return q.Places
	}
	return nil
}

// Sent returns the event with which a message was sent. Of later events of a message only the ID is set.
func (f Feed) Sent(id int64) feed.Event {
	e, _ := f.Find(0, func(e feed.Event) bool { return e.Type == feed.Sent && e.Message.ID == id })
	return e
}

// Message waits until a message of a participant was held, delivered or lost after since. kind is its
// kind, such as "answer", or that in Action.Breakpoints, such as "Txn answer"; "" is any.
func (f Feed) Message(since int64, what feed.Type, who, kind string) (found feed.MessageState) {
	f.T.Helper()
	etcdtest.Eventually(f.T, func() bool {
		sent := map[int64]feed.Event{}
		for _, e := range f.All() {
			switch {
			case e.Type == feed.Sent:
				sent[e.Message.ID] = e
			case e.Type == what && e.Seq > since && sent[e.Message.ID].Who == who:
				found = *sent[e.Message.ID].Message
				if slices.Contains([]string{"", found.Kind, KindOf(found)}, kind) {
					return true
				}
			}
		}
		return false
	}, "the feed: a message %q of %s is %s", kind, who, what)
	return found
}

// KindOf is the kind of a message, as in Action.Breakpoints.
func KindOf(m feed.MessageState) string { return m.Method + " " + m.Kind }

// Reported matches reports of these kinds of a participant.
func Reported(who string, kinds ...string) func(feed.Event) bool {
	return func(e feed.Event) bool {
		return e.Type == feed.Report && e.Who == who && slices.Contains(kinds, e.Report.Kind)
	}
}

// IsAction reports whether an event is an action, done or refused.
func IsAction(e feed.Event) bool { return e.Type == feed.Acted }
