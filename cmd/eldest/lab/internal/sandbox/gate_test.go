package sandbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// gateStage is a gate, and what it has reported.
type gateStage struct {
	*gate
	mu    sync.Mutex
	told  []string
	torn  []int64
	spent int
}

func newGateStage() *gateStage {
	s := &gateStage{}
	s.gate = newGate(func(t feed.Type, m message) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, fmt.Sprint(t, " ", m.id))
	}, func(m message) { s.torn = append(s.torn, m.id) }, func() { s.spent++ })
	return s
}

// send sends a message now, and passes it in the background.
func (s *gateStage) send(ctx context.Context, m message) <-chan bool {
	m.at = time.Now()
	passed := make(chan bool, 1)
	go func() { passed <- s.pass(ctx, m) }()
	synctest.Wait()
	return passed
}

// is checks what was reported since the last call.
func (s *gateStage) is(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, want, s.told)
	s.told = nil
}

func ask(id int64) message    { return message{id: id, kind: "Txn request"} }
func answer(id int64) message { return message{id: id, kind: "Txn answer", reply: true, answer: true} }

func TestGateHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newGateStage(), t.Context()
		require.True(t, <-s.send(ctx, ask(1)))
		s.is(t, "delivered 1")
		s.change(func(set *settings) { set.breakpoints = []string{"Txn answer"} })
		require.True(t, <-s.send(ctx, ask(2)))
		s.is(t, "delivered 2")
		three, four := s.send(ctx, answer(3)), s.send(ctx, answer(4))
		s.is(t, "held 3", "held 4")
		require.Nil(t, s.decide(func(m message) bool { return m.id == 5 }, true))
		h := s.decide(func(m message) bool { return m.id == 4 }, false)
		require.EqualValues(t, 4, h.id)
		<-h.over
		require.False(t, <-four)
		s.is(t, "lost 4")

		// Another call ends: its message is lost.
		short, cancel := context.WithCancel(ctx)
		five := s.send(short, answer(5))
		cancel()
		require.False(t, <-five)
		s.is(t, "held 5", "lost 5")
		require.Nil(t, s.decide(func(m message) bool { return m.id == 5 }, true))

		// What need not be held any more is released.
		s.change(func(set *settings) { set.hold = true })
		six := s.send(ctx, ask(6))
		s.change(func(set *settings) { set.hold, set.breakpoints = false, nil })
		require.True(t, <-three)
		require.True(t, <-six)
		synctest.Wait()
		slices.Sort(s.told)
		s.is(t, "delivered 3", "delivered 6", "held 6")
	})
}

// A message that is lost because of a cut ends its call when the cut is over, and not before.
func TestGateCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for way, lost := range map[string][]bool{bothWays: {true, true}, requests: {true, false}, replies: {false, true}} {
			s := newGateStage()
			s.change(func(set *settings) { set.cut = way })
			for i, m := range []message{ask(1), answer(2)} {
				passed := s.send(t.Context(), m)
				if !lost[i] {
					require.True(t, <-passed)
					s.is(t, fmt.Sprint("delivered ", m.id))
					continue
				}
				s.is(t, fmt.Sprint("lost ", m.id))
				s.change(func(set *settings) { set.delay = 0 }) // something else
				synctest.Wait()
				require.Empty(t, passed)
				s.change(func(set *settings) { set.cut = "" })
				require.False(t, <-passed)
				s.change(func(set *settings) { set.cut = way })
			}
			short, cancel := context.WithCancel(t.Context())
			passed := s.send(short, message{id: 3, reply: lost[1]})
			cancel()
			require.False(t, <-passed)
			s.is(t, "lost 3")
			// The end of a call that the client has ended concerns nobody.
			require.True(t, <-s.send(short, message{id: 4, reply: true, end: true}))
			s.is(t, "delivered 4")
			require.Equal(t, int64(3), s.torn[len(s.torn)-1])
			require.Len(t, s.torn, len(slices.DeleteFunc(lost, func(l bool) bool { return !l }))+1)
		}
	})
}

func TestGateDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin := newGateStage(), time.Now()
		s.change(func(set *settings) { set.delay = time.Second })
		require.True(t, <-s.send(t.Context(), ask(1)))
		require.Equal(t, time.Second, time.Since(begin))
		two := s.send(t.Context(), ask(2))
		s.change(func(set *settings) { set.delay = 0 })
		require.True(t, <-two)
		require.Equal(t, time.Second, time.Since(begin))
		s.is(t, "delivered 1", "delivered 2")
		require.Equal(t, settings{}, s.settings())

		// The time for which it has waited for the one before it counts.
		s.change(func(set *settings) { set.delay = time.Second })
		three := ask(3)
		three.at = time.Now()
		time.Sleep(600 * time.Millisecond)
		begin = time.Now()
		require.True(t, s.pass(t.Context(), three))
		require.Equal(t, 400*time.Millisecond, time.Since(begin))
	})
}

// Exactly one reply is lost, and none that belongs to a renewal.
func TestGateLosesAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGateStage()
		s.change(func(set *settings) { set.loseReply = true })
		require.True(t, <-s.send(t.Context(), ask(1)))
		require.True(t, <-s.send(t.Context(), message{id: 2, reply: true}))
		require.False(t, <-s.send(t.Context(), answer(3)))
		require.True(t, <-s.send(t.Context(), answer(4)))
		s.is(t, "delivered 1", "delivered 2", "lost 3", "delivered 4")
		require.Equal(t, 1, s.spent)
		require.False(t, s.settings().loseReply)
	})
}
