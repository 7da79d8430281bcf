package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The dead say nothing, and order and instants come from the log.
func TestLog(t *testing.T) {
	now, rev := time.Second, int64(5)
	l := NewLog(func() time.Duration { return now }, func() int64 { return rev })
	require.True(t, l.Add(Event{Who: "a", Kind: Won, Token: 2}))
	now, rev = 2*time.Second, 6
	require.True(t, l.Add(Event{Who: "a", Kind: Crashed}))
	require.True(t, l.Dead("a"))
	require.False(t, l.Add(Event{Who: "a", Kind: Ended, Token: 2}), "a dead participant spoke")
	require.True(t, l.Add(Event{Kind: Quiet}))
	require.True(t, l.Add(Event{Kind: Read, At: time.Second, Until: now}))
	require.False(t, l.Add(Event{Who: "a", Kind: Read, At: time.Second, Until: now}))
	require.Equal(t, []Event{
		{Seq: 1, At: time.Second, Rev: 5, Who: "a", Kind: Won, Token: 2},
		{Seq: 2, At: 2 * time.Second, Rev: 6, Who: "a", Kind: Crashed},
		{Seq: 3, At: 2 * time.Second, Rev: 6, Kind: Quiet},
		{Seq: 4, At: time.Second, Until: 2 * time.Second, Rev: 6, Kind: Read},
	}, l.Events())
}

// The queue at each revision, with a key that lives twice and one overwritten.
func TestQueue(t *testing.T) {
	s := tell().put(0xa).put(0xb).del(0xa, 2).put(0xa)
	s.rev++
	s.change(Change{Key: key(0xb), Create: 3, Value: "by hand"})
	q := s.queue()
	require.Len(t, q.lives, 3)
	require.EqualValues(t, 2, q.oldest(3).create)
	require.EqualValues(t, 3, q.oldest(4).create)
	require.EqualValues(t, 3, q.oldest(6).create)
	require.Nil(t, q.oldest(1))
	require.True(t, q.leadsWithin(3, 1, 4))
	require.False(t, q.leadsWithin(3, 1, 3))
	require.False(t, q.leadsWithin(5, 1, 100))
	require.EqualValues(t, 0xb, q.byToken(3).lease)
}

// What is written can be read back, and nothing else can.
func TestWriteValue(t *testing.T) {
	token, name, ok := parseWrite(WriteValue(12, "p1-12-3"))
	require.True(t, ok)
	require.EqualValues(t, 12, token)
	require.Equal(t, "p1-12-3", name)
	_, _, ok = parseWrite("by hand")
	require.False(t, ok)
}
