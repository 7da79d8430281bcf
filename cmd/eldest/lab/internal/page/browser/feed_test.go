package browser_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// listener reads the feed beside the page.
type listener struct {
	t *testing.T
	*record
}

// record is what was read.
type record struct {
	mu     sync.Mutex
	events []feed.Event
	sent   map[int64]feed.Event // by the ID of the message
}

// listen reads the events until the test ends.
func listen(t *testing.T, client *http.Client, base string) *listener {
	t.Helper()
	f := &listener{t, &record{sent: map[int64]feed.Event{}}}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/events", nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return // the test or the command has ended
			}
			if data, ok := strings.CutPrefix(line, "data:"); ok {
				f.add(data)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		reading.Wait()
	})
	return f
}

func (f *listener) add(data string) {
	var batch []feed.Event
	if err := json.Unmarshal([]byte(data), &batch); err != nil {
		f.t.Errorf("the feed: %v in %s", err, data)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, batch...)
	for _, e := range batch {
		if e.Type == feed.Sent {
			f.sent[e.Message.ID] = e
		}
	}
}

// seq returns the number of the newest event.
func (f *listener) seq() (newest int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range slices.Backward(f.events) {
		return e.Seq
	}
	return 0
}

// find returns the first event after since for which is returns true.
func (f *listener) find(since int64, is func(feed.Event) bool) (feed.Event, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.Seq > since && is(e) {
			return e, true
		}
	}
	return feed.Event{}, false
}

// newest returns the last event for which is returns true.
func (f *listener) newest(is func(feed.Event) bool) (feed.Event, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range slices.Backward(f.events) {
		if is(e) {
			return e, true
		}
	}
	return feed.Event{}, false
}

// await waits for an event after since.
func (f *listener) await(since int64, what string, is func(feed.Event) bool) (e feed.Event) {
	f.t.Helper()
	etcdtest.Eventually(f.t, func() (found bool) { e, found = f.find(since, is); return found }, "the feed: %s", what)
	return e
}

// acted waits until an action was done after since, which must not have failed.
func (f *listener) acted(since int64, do string) feed.Event {
	f.t.Helper()
	e := f.await(since, do+" is done", func(e feed.Event) bool { return e.Type == feed.Acted && e.Action.Do == do })
	require.Empty(f.t, e.Error, "%s failed: %s", do, js(e.Action))
	return e
}

// participant returns the newest state of a participant.
func (f *listener) participant(who string) feed.ParticipantState {
	e, ok := f.newest(func(e feed.Event) bool { return e.Type == feed.Participant && e.Who == who })
	if !ok {
		return feed.ParticipantState{}
	}
	return *e.Participant
}

// members returns the newest states of etcd's members.
func (f *listener) members() []feed.MemberState {
	e, _ := f.newest(func(e feed.Event) bool { return e.Type == feed.Members })
	return e.Members
}

// member returns the newest state of a member, counted from 0.
func (f *listener) member(i int) string {
	if all := f.members(); i < len(all) {
		return all[i].State
	}
	return ""
}

// owners returns whose the keys of the newest queue are.
func (f *listener) owners() map[string]string {
	owners := map[string]string{}
	if e, ok := f.newest(func(e feed.Event) bool { return e.Type == feed.Queue }); ok {
		for _, p := range e.Queue.Places {
			owners[p.Key] = p.Who
		}
	}
	return owners
}

// messageOf returns the event with which the message of an event was sent. Of the others, only the
// ID of the message is set.
func (f *listener) messageOf(e feed.Event) feed.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[e.Message.ID]
}

// message waits until a message of a participant was held, delivered or lost after since. kind is
// its kind, such as "Txn answer"; "" is any.
func (f *listener) message(since int64, what feed.Type, who, kind string) feed.MessageState {
	f.t.Helper()
	var found feed.MessageState
	f.await(since, fmt.Sprintf("a message of %s is %s: %s", who, what, kind), func(e feed.Event) bool {
		if e.Type != what {
			return false
		}
		// find holds the mutex.
		sent, ok := f.sent[e.Message.ID]
		if !ok || sent.Who != who || kind != "" && kindOf(*sent.Message) != kind {
			return false
		}
		found = *sent.Message
		return true
	})
	return found
}

// kindOf is the kind of a message in the language of Action.Breakpoints.
func kindOf(m feed.MessageState) string { return m.Method + " " + m.Kind }

// reported reports whether an event is a report of that kind by a participant.
func reported(e feed.Event, who, kind string) bool {
	return e.Type == feed.Report && e.Who == who && e.Report.Kind == kind
}

// participantName returns the name of participant i, counted from 0.
func participantName(i int) string { return fmt.Sprintf("p%d", i+1) }

func equal(a, b []string) bool { return slices.Equal(a, b) }

// isAction reports whether an event is an action, done or refused.
func isAction(e feed.Event) bool { return e.Type == feed.Acted }
