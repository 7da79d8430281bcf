package participant

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A clock runs at its rate from the moment at which the rate is set, and never backwards.
func TestClock(t *testing.T) {
	c := newClock()
	last := c.Now()
	for _, rate := range []float64{0.5, 2, 1} {
		c.run(rate)
		require.Zero(t, c.ran(), "nobody has read it")
		for begun := lease.Boot().Now(); lease.Boot().Now()-begun < 10*time.Millisecond; {
			now := c.Now()
			require.GreaterOrEqual(t, now, last)
			last = now
		}
		require.InDelta(t, rate, c.ran(), 0.01)
	}
}

// scripted is a tenure that is certain for a given number of checks.
type scripted struct {
	contender.Tenure
	sure, stall int             // stall: the check that pauses before it returns
	asked       []time.Duration // the times of the checks
}

func (s *scripted) Token() int64 { return 7 }

func (s *scripted) Holds() bool {
	s.asked = append(s.asked, lease.Boot().Now())
	if len(s.asked) == s.stall {
		time.Sleep(5 * silence)
	}
	return len(s.asked) <= s.sure
}

// answered reports whether an event is that of a check, the first of which is 1.
func (s *scripted) answered(e oracle.Event, question int) bool {
	at := s.asked[question-1]
	return e.At <= at && at <= e.Until
}

// samples runs the sampler on a tenure and returns the events that it reported.
func samples(t *testing.T, s *scripted) []oracle.Event {
	t.Helper()
	var out bytes.Buffer
	p := &participant{out: oracle.NewRecorder(&out, lease.Boot().Now)}
	require.NoError(t, p.out.About(oracle.About{}))
	p.sample(s)
	h, err := oracle.Load(&out)
	require.NoError(t, err)
	for _, e := range h.Events {
		require.LessOrEqual(t, e.At, e.Until)
		require.EqualValues(t, 7, e.Token)
	}
	return h.Events
}

// The last sample in which it is certain is reported, even if few samples before it are, and then a
// few in which it is not certain.
func TestLastSureSampleIsTold(t *testing.T) {
	s := &scripted{sure: 400}
	told := samples(t, s)
	// One sample in each sampleTold is reported, and on a busy machine each late one, with the one before.
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

// A sample that took long, because the process was stopped during the check, is reported with both
// readings, and so is the one before, or one that is hardly older.
func TestSilenceIsTold(t *testing.T) {
	s := &scripted{sure: 40, stall: 20}
	told := samples(t, s)
	i := slices.IndexFunc(told, func(e oracle.Event) bool { return s.answered(e, 20) })
	require.Positive(t, i)
	require.GreaterOrEqual(t, told[i].Until-told[i].At, 5*silence)
	require.LessOrEqual(t, s.asked[18]-told[i-1].Until, sampleTold+silence, "the one before is missing")
}

// A participant that people watch reports less, and the last sample in which it is certain all the
// same.
func TestCalmSamples(t *testing.T) {
	s := &scripted{sure: 150}
	var out bytes.Buffer
	p := &participant{Config: Config{Calm: time.Second}, out: oracle.NewRecorder(&out, lease.Boot().Now)}
	require.NoError(t, p.out.About(oracle.About{}))
	p.sample(s)
	h, err := oracle.Load(&out)
	require.NoError(t, err)
	n := len(h.Events) - 1
	require.Equal(t, oracle.NotSure, h.Events[n].Kind)
	require.Equal(t, oracle.Sure, h.Events[n-1].Kind)
	require.True(t, s.answered(h.Events[n-1], 150))
	require.Less(t, len(h.Events), 100)
}

// What a candidate reports of itself, and which phase follows from it.
func TestPhases(t *testing.T) {
	p := newPhases(func(string) {})
	is := func(want string, s election.Status, turned bool) {
		t.Helper()
		require.Equal(t, want, p.of(s, turned))
	}
	waits := func(elder eldest.Token) {
		p.waiting(election.WaitingEvent{Predecessor: eldest.Candidate{Token: elder}})
	}
	is(idle, election.Status{}, false)
	p.intend(entering)
	is(entering, election.Status{}, false)
	is(waiting, election.Status{Token: 5}, true)
	waits(3)
	is(waiting, election.Status{Token: 5}, false)
	is(proving, election.Status{Token: 5}, true)
	is(proving, election.Status{Token: 5}, false)
	waits(2)
	is(waiting, election.Status{Token: 5}, true)
	is(proving, election.Status{Token: 5}, true)
	is(leading, election.Status{Token: 5, Leading: true}, true)
	is(draining, election.Status{Token: 5, Suspended: true}, true)
	is(proving, election.Status{Token: 5}, true)
	p.intend(leaving)
	is(leaving, election.Status{}, true)

	waits(2) // again the same one, in another candidacy
	is(waiting, election.Status{Token: 7}, true)
	p.registered(election.RegisteredEvent{Token: 9})
	is(proving, election.Status{Token: 9}, true) // with heartbeats
	waits(8)
	is(waiting, election.Status{Token: 9}, true)
	(*phases)(nil).intend(idle)
}

func TestUnknownRule(t *testing.T) {
	require.ErrorContains(t, Run(strings.NewReader(`{"contender":"eldest","without":"gravity"}`), io.Discard), "gravity")
}

func TestGoroutinesThatAreLeftAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it waits for seconds
		before := runtime.NumGoroutine()
		require.Empty(t, goroutines(before))
		end := make(chan struct{})
		var some sync.WaitGroup
		for range 3 { // three, as one that was about to end may be counted in before
			some.Go(func() { <-end })
		}
		named := goroutines(before)
		require.Len(t, named, 1)
		require.Contains(t, named[0], "TestGoroutinesThatAreLeftAreNamed")
		close(end)
		some.Wait()
		require.Empty(t, goroutines(before))
	})
}
