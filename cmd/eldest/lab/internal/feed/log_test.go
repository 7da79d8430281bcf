package feed

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func problem(n int) Event { return Event{Type: Problem, Error: strconv.Itoa(n)} }

// Each reader gets all events, in their order, at its own speed.
func TestLog(t *testing.T) {
	l := NewLog()
	for n := range 5 {
		require.EqualValues(t, n+1, l.Add(problem(n)).Seq)
	}
	for _, most := range []int{1, 2, 5, 100} {
		var all []Event
		for seq := int64(0); seq < 5; {
			some, err := l.After(t.Context(), seq, most)
			require.NoError(t, err)
			require.LessOrEqual(t, len(some), most)
			all, seq = append(all, some...), some[len(some)-1].Seq
		}
		require.Len(t, all, 5)
		for n, e := range all {
			require.Equal(t, strconv.Itoa(n), e.Error)
		}
	}
	of, err := l.After(t.Context(), 9, 100)
	require.NoError(t, err)
	require.Len(t, of, 5, "9 is the number of an earlier run")
}

// A reader that is too slow gets the newest state of everything first.
func TestLogForgetsOnlyOldStates(t *testing.T) {
	l := NewLog()
	queue := func(election string, revision int64) {
		l.Add(Event{Type: Queue, Queue: &QueueState{Election: election, Revision: revision}})
	}
	queue("a", 1)
	queue("b", 1)
	queue("a", 2)
	for n := range 2 * Capacity {
		l.Add(problem(n))
	}
	events, err := l.After(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, events, 12)
	states := map[string]int64{}
	for _, e := range events[:2] {
		states[e.Queue.Election] = e.Queue.Revision
	}
	require.Equal(t, map[string]int64{"a": 2, "b": 1}, states)
	seq := events[len(events)-1].Seq
	for seq < int64(3+2*Capacity) {
		events, err = l.After(t.Context(), seq, Capacity)
		require.NoError(t, err)
		require.Equal(t, seq+1, events[0].Seq)
		seq = events[len(events)-1].Seq
	}
}

// Large events are dropped earlier, but never the newest one.
func TestLogIsBoundedInBytes(t *testing.T) {
	l := NewLog()
	for n := range int64(40) {
		body := make([]byte, mostBytes/10)
		l.Add(Event{Type: Sent, Message: &MessageState{ID: n, Body: body}})
		l.mu.Lock()
		require.LessOrEqual(t, l.bytes, mostBytes)
		l.mu.Unlock()
	}
	events, err := l.After(t.Context(), 0, 100)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(events), 8)
	require.LessOrEqual(t, len(events), 9)
	l.Add(Event{Type: Problem, Error: strings.Repeat("x", 2*mostBytes)})
	events, err = l.After(t.Context(), 0, 100)
	require.NoError(t, err)
	require.Len(t, events, 1)
}

// What is not there any more is not among the newest states.
func TestLogForgets(t *testing.T) {
	l := NewLog()
	queue := func(election string) { l.Add(Event{Type: Queue, Queue: &QueueState{Election: election}}) }
	participant := func(who string, life Life) {
		l.Add(Event{Type: Participant, Who: who, Participant: &ParticipantState{Life: life}})
	}
	flood := func() {
		for n := range 2 * Capacity {
			l.Add(problem(n))
		}
	}
	states := func() (names []string) {
		events, err := l.After(t.Context(), 0, 1)
		require.NoError(t, err)
		for _, e := range events[:len(events)-1] {
			names = append(names, stateOf(e))
		}
		return names
	}
	queue("b")
	queue("a")
	queue("c")
	participant("p1", Running)
	participant("p2", Running)
	participant("p2", Left)
	l.ForgetQueue("c")
	l.ForgetQueue("b")
	queue("b") // it is shown again
	flood()
	require.Equal(t, []string{"queue a", "participant p1", "queue b"}, states(), "the oldest first")
	require.Empty(t, l.forgotten)
	participant("p1", Left)
	l.ForgetQueue("a")
	flood()
	require.Equal(t, []string{"queue b"}, states())
	require.Empty(t, l.forgotten)
}

// After blocks until there is an event, or ctx ends; meanwhile, and a moment longer, the log is read.
func TestLogIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLog()
		require.False(t, l.Read())
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() {
				events, err := l.After(t.Context(), 0, 10)
				if err != nil || len(events) != 1 {
					t.Error(events, err)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		require.True(t, l.Read())
		l.Add(problem(1))
		waiting.Wait()
		require.True(t, l.Read(), "the page may connect again")
		time.Sleep(absence)
		require.False(t, l.Read())

		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, err := l.After(ctx, 1, 10)
		require.ErrorIs(t, err, gone)
	})
}
