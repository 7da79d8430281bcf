package sandbox

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// gateStage is a participant's network, and what it has reported.
type gateStage struct {
	*candidate
	seen int64
}

func newGateStage() *gateStage {
	return &gateStage{candidate: newCandidate(&Sandbox{log: feed.NewLog()}, "p1")}
}

// send has a message come now, and passes it in the background.
func (s *gateStage) send(ctx context.Context, m message) <-chan bool {
	m.at = time.Now()
	passed := make(chan bool, 1)
	go func() { passed <- s.passes(ctx, m) }()
	synctest.Wait()
	return passed
}

// passes has a message come, and passes it.
func (s *gateStage) passes(ctx context.Context, m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.number = m.id
	s.come(&m, &feed.MessageState{ID: m.id})
	return s.pass(ctx, &m)
}

// decides decides about a message, and returns it; nil if none is held with this number.
func (s *gateStage) decides(id int64, release bool) *message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decide(func(m *message) bool { return m.id == id }, release)
}

// told returns what was reported since the last call, besides what was sent, and how often the state was.
func (s *gateStage) told() (of []string, states int) {
	events, err := s.in.log.After(ended(), s.seen, feed.Capacity)
	if err != nil {
		return nil, 0
	}
	for _, e := range events {
		s.seen = e.Seq
		switch e.Type {
		case feed.Held, feed.Delivered, feed.Lost:
			of = append(of, fmt.Sprint(e.Type, " ", e.Message.ID))
		case feed.Participant:
			states++
		}
	}
	return of, states
}

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// is checks what was reported since the last call.
func (s *gateStage) is(t *testing.T, want ...string) {
	t.Helper()
	told, _ := s.told()
	require.Equal(t, want, told)
}

func ask(id int64) message {
	return message{id: id, kind: "Txn request", direction: direction{call: int(id)}}
}
func answer(id int64) message {
	return message{id: id, kind: "Txn answer", direction: direction{call: int(id), reply: true}, answer: true}
}

func TestGateHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newGateStage(), t.Context()
		require.True(t, <-s.send(ctx, ask(1)))
		s.is(t, "delivered 1")
		s.change(func(set *feed.ParticipantState) { set.Breakpoints = []string{"Txn answer"} })
		require.True(t, <-s.send(ctx, ask(2)))
		s.is(t, "delivered 2")
		three, four := s.send(ctx, answer(3)), s.send(ctx, answer(4))
		s.is(t, "held 3", "held 4")
		require.Nil(t, s.decides(5, true))
		dropped := s.decides(4, false)
		require.EqualValues(t, 4, dropped.id)
		require.False(t, <-four)
		require.True(t, dropped.told)
		s.is(t, "lost 4")

		// Another call ends: its message is lost.
		short, cancel := context.WithCancel(ctx)
		five := s.send(short, answer(5))
		cancel()
		require.False(t, <-five)
		s.is(t, "held 5", "lost 5")
		require.Nil(t, s.decides(5, true))

		// What need not be held any more is released.
		s.change(func(set *feed.ParticipantState) { set.Hold = true })
		six := s.send(ctx, ask(6))
		s.change(func(set *feed.ParticipantState) { set.Hold, set.Breakpoints = false, nil })
		require.True(t, <-three)
		require.True(t, <-six)
		synctest.Wait()
		told, _ := s.told()
		require.ElementsMatch(t, []string{"delivered 3", "delivered 6", "held 6"}, told)

		// It is released although messages are held again at once.
		s.change(func(set *feed.ParticipantState) { set.Hold = true })
		seven := s.send(ctx, ask(7))
		s.change(func(set *feed.ParticipantState) { set.Hold = false })
		s.change(func(set *feed.ParticipantState) { set.Hold = true })
		require.True(t, <-seven)
		s.is(t, "held 7", "delivered 7")
	})
}

// A message that is lost because of a cut ends its call when the cut is over, and not before.
func TestGateCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for way, lost := range map[string][]bool{bothWays: {true, true}, requests: {true, false}, replies: {false, true}} {
			s := newGateStage()
			s.change(func(set *feed.ParticipantState) { set.Cut = way })
			for i, m := range []message{ask(1), answer(2)} {
				passed := s.send(t.Context(), m)
				if !lost[i] {
					require.True(t, <-passed)
					s.is(t, fmt.Sprint("delivered ", m.id))
					continue
				}
				s.is(t, fmt.Sprint("lost ", m.id))
				s.change(func(set *feed.ParticipantState) { set.DelayMS = 0 }) // something else
				synctest.Wait()
				require.Empty(t, passed)
				s.change(func(set *feed.ParticipantState) { set.Cut = "" })
				require.False(t, <-passed)
				s.change(func(set *feed.ParticipantState) { set.Cut = way })
			}
			short, cancel := context.WithCancel(t.Context())
			three := message{id: 3, direction: direction{call: 3, reply: lost[1]}}
			passed := s.send(short, three)
			cancel()
			require.False(t, <-passed)
			s.is(t, "lost 3")
			require.True(t, s.torn[three.direction])
			// The end of a call that the client has ended concerns nobody.
			require.True(t, <-s.send(short, message{id: 4, direction: direction{call: 3, reply: true}, end: true}))
			s.is(t, "delivered 4")
			require.False(t, s.torn[three.direction])
			require.Len(t, s.torn, len(slices.DeleteFunc(lost, func(l bool) bool { return !l })))
		}
	})
}

func TestGateDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin := newGateStage(), time.Now()
		s.change(func(set *feed.ParticipantState) { set.DelayMS = 1000 })
		require.True(t, <-s.send(t.Context(), ask(1)))
		require.Equal(t, time.Second, time.Since(begin))
		two := s.send(t.Context(), ask(2))
		s.change(func(set *feed.ParticipantState) { set.DelayMS = 0 })
		require.True(t, <-two)
		require.Equal(t, time.Second, time.Since(begin))
		s.is(t, "delivered 1", "delivered 2")
		require.Equal(t, feed.ParticipantState{}, s.state)

		// The time for which it has waited for the one before it counts.
		s.change(func(set *feed.ParticipantState) { set.DelayMS = 1000 })
		three := ask(3)
		three.at = time.Now()
		time.Sleep(600 * time.Millisecond)
		begin = time.Now()
		require.True(t, s.passes(t.Context(), three))
		require.Equal(t, 400*time.Millisecond, time.Since(begin))
	})
}

// Exactly one reply is lost, and none that belongs to a renewal.
func TestGateLosesAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGateStage()
		s.change(func(set *feed.ParticipantState) { set.LoseReply = true })
		require.True(t, <-s.send(t.Context(), ask(1)))
		require.True(t, <-s.send(t.Context(), message{id: 2, direction: direction{call: 2, reply: true}}))
		require.False(t, <-s.send(t.Context(), answer(3)))
		require.True(t, <-s.send(t.Context(), answer(4)))
		told, states := s.told()
		require.Equal(t, []string{"delivered 1", "delivered 2", "lost 3", "delivered 4"}, told)
		require.Equal(t, 2, states, "it was set, and is over")
		require.False(t, s.state.LoseReply)
	})
}
