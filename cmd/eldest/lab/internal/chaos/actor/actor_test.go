package actor

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A clock runs at its rate from the moment on at which it is told, and never back.
func TestClock(t *testing.T) {
	c := newClock(instant.Begin())
	last := c.Now()
	for _, rate := range []float64{0.5, 2, 1} {
		c.run(rate)
		begun, shown := c.real.Now(), c.Now()
		require.GreaterOrEqual(t, shown, last)
		for c.real.Now()-begun < 10*time.Millisecond {
			now := c.Now()
			require.GreaterOrEqual(t, now, last)
			last = now
		}
		require.InDelta(t, rate, c.run(rate), 0.01)
	}
	require.Zero(t, c.run(1), "nobody has read it")
}

// scripted is a tenure that is sure for so many questions.
type scripted struct {
	contender.Tenure
	sure, stall int // stall: the question before whose answer it pauses
	clock       instant.Clock
	asked       []time.Duration // when
}

func (s *scripted) Token() int64 { return 7 }

func (s *scripted) Holds() bool {
	s.asked = append(s.asked, s.clock.Now())
	if len(s.asked) == s.stall {
		time.Sleep(5 * silence)
	}
	return len(s.asked) <= s.sure
}

// answered reports whether an event is that of a question, the first of which is 1.
func (s *scripted) answered(e oracle.Event, question int) bool {
	at := s.asked[question-1]
	return e.At <= at && at <= e.Until
}

// samples runs the sampler on a tenure and returns what it told.
func samples(t *testing.T, s *scripted) []oracle.Event {
	t.Helper()
	var file bytes.Buffer
	a := &actor{cfg: Config{Who: "p1"}, clock: newClock(instant.Begin())}
	s.clock = a.clock.real
	a.log = oracle.NewRecorder(&file, s.clock.Now)
	require.NoError(t, a.log.About(oracle.About{}))
	a.sample(s)
	h, err := oracle.Load(&file)
	require.NoError(t, err)
	for _, e := range h.Events {
		require.LessOrEqual(t, e.At, e.Until)
		require.EqualValues(t, 7, e.Token)
	}
	return h.Events
}

// The last sample in which it is sure is told, however little is told in between, and then
// that it is not, a few times.
func TestLastSureSampleIsTold(t *testing.T) {
	s := &scripted{sure: 400}
	told := samples(t, s)
	// One in a while is told, and on a busy machine each that comes late, with the one before.
	late := 0
	for i := range len(s.asked) - 3 {
		if s.asked[i+3]-s.asked[i] > silence {
			late++
		}
	}
	while := int((s.asked[len(s.asked)-1] - s.asked[0]) / sampleTold)
	require.LessOrEqual(t, len(told), while+2*late+sampleAfter+10, "too many")
	n := len(told) - sampleAfter
	require.Equal(t, oracle.Sure, told[0].Kind)
	require.Equal(t, oracle.Sure, told[n-1].Kind)
	for _, e := range told[n:] {
		require.Equal(t, oracle.NotSure, e.Kind)
	}
	require.True(t, s.answered(told[n-1], 400), "the last one before is missing")
}

// A sample that took long, because the process stood still in the middle of it, is told
// with both readings, and so is the one before, or one that is hardly older.
func TestSilenceIsTold(t *testing.T) {
	s := &scripted{sure: 40, stall: 20}
	told := samples(t, s)
	i := slices.IndexFunc(told, func(e oracle.Event) bool { return s.answered(e, 20) })
	require.Positive(t, i)
	require.GreaterOrEqual(t, told[i].Until-told[i].At, 5*silence)
	require.LessOrEqual(t, s.asked[18]-told[i-1].Until, sampleTold+silence, "the one before is missing")
}

func TestGoroutinesThatAreLeftAreNamed(t *testing.T) {
	before := census()
	require.Empty(t, before.left())
	end := make(chan struct{})
	var some sync.WaitGroup
	for range 3 { // and of those before, one that was about to end may be counted
		some.Go(func() { <-end })
	}
	left := before.left()
	require.Len(t, left, 1)
	require.Contains(t, left[0], "TestGoroutinesThatAreLeftAreNamed")
	close(end)
	some.Wait()
	require.Empty(t, before.left())
}
