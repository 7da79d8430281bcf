package sandbox

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// What follows a lost message in its direction is lost as well, and each outcome is told once.
func TestLostDirection(t *testing.T) {
	log := feed.NewLog()
	c := newCandidate(&Sandbox{log: log}, "p1")
	seen := int64(0)
	is := func(want ...string) {
		t.Helper()
		var got []string
		if len(want) > 0 {
			events, err := log.After(t.Context(), seen, feed.Capacity)
			require.NoError(t, err)
			for _, e := range events {
				got = append(got, fmt.Sprint(e.Type, " ", e.Message.ID))
				seen = e.Seq
			}
		}
		require.Equal(t, want, got)
	}
	messages := map[int64]*message{}
	come := func(id int64, call int, reply, end bool) {
		m := &message{id: id, place: place{number: id}, direction: direction{call, reply}, end: end}
		messages[id] = m
		c.come(m, &feed.MessageState{ID: id})
	}
	// reaches has a message reach the gate, which has lost or delivered it.
	reaches := func(id int64, outcome feed.Type) {
		c.tell(outcome, messages[id])
		delete(c.coming, messages[id].place)
	}
	come(1, 1, false, false)
	come(2, 1, false, false)
	come(3, 1, true, false)
	come(4, 2, false, false)
	is("sent 1", "sent 2", "sent 3", "sent 4")
	reaches(1, feed.Lost)
	c.tear(messages[1])
	is("lost 1", "lost 2")
	come(5, 1, false, false)
	is("sent 5", "lost 5")
	reaches(2, feed.Lost)
	reaches(3, feed.Delivered)
	reaches(4, feed.Delivered)
	is("delivered 3", "delivered 4")
	come(6, 1, true, true)
	reaches(6, feed.Delivered)
	is("sent 6", "delivered 6")
	reaches(5, feed.Lost)
	come(7, 2, true, false)
	is("sent 7")
	require.Empty(t, c.torn)
	require.Len(t, c.coming, 1)

	// Nothing follows the end of a call.
	come(8, 3, true, true)
	reaches(8, feed.Lost)
	c.tear(messages[8])
	is("sent 8", "lost 8")
	require.Empty(t, c.torn)
}
