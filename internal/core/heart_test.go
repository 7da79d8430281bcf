package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/core"
)

const ms = time.Millisecond

// pulse is a heart with a timeout of 1 s, a margin of 200 ms, and a heartbeat every 250 ms.
type pulse struct {
	*testing.T
	core.Heart
}

func newPulse(t *testing.T) *pulse {
	return &pulse{t, core.Heart{Pace: core.Pace{Every: 250 * ms, Timeout: s, Margin: 200 * ms}}}
}

func (p *pulse) step(e core.HeartEvent) (effects core.HeartEffects) {
	p.Heart, effects = core.StepHeart(p.Heart, e)
	return effects
}

func (p *pulse) at(now time.Duration, k core.HeartKind) core.HeartEffects {
	return p.step(core.HeartEvent{Kind: k, Now: now})
}

func (p *pulse) acknowledged(now, sent time.Duration) core.HeartEffects {
	return p.step(core.HeartEvent{Kind: core.Acknowledged, Now: now, Sent: sent})
}

// Heartbeats are sent while they are needed, one in each interval, however late the clock is read.
func TestHeartBeats(t *testing.T) {
	p := newPulse(t)
	require.Equal(t, core.HeartEffects{}, p.at(10*s, core.Ticked))
	e := p.at(10*s, core.Wanted)
	require.Equal(t, core.HeartEffects{Beat: true, Timer: 10*s + 250*ms}, e)
	require.False(t, p.Sure(), "nobody leads before a beat is acknowledged")
	require.False(t, p.at(10*s+249*ms, core.Ticked).Beat)
	require.True(t, p.at(10*s+250*ms, core.Ticked).Beat, "it waits for no answer")
	require.Equal(t, core.HeartEffects{Beat: true, Timer: 12*s + 250*ms}, p.at(12*s, core.Ticked), "one, where several are due")
	require.Equal(t, 3, p.Flying)
	silent := p.step(core.HeartEvent{Kind: core.Ticked, Now: 13 * s, Silent: errors.New("stuck")})
	require.False(t, silent.Beat, "who is stuck does not beat")
	for range 2 {
		require.False(t, p.at(13*s, core.Missed).Delete)
	}
	require.Equal(t, core.HeartEffects{}, p.at(13*s, core.Unwanted), "the key is deleted when nothing is under way that puts it")
	require.True(t, p.acknowledged(13*s, 12*s+500*ms).Delete)
	require.False(t, p.Sure())
}

// A stretch begins and continues only by acknowledgements, and each counts from the sending of its
// heartbeat.
func TestHeartStretch(t *testing.T) {
	p := newPulse(t)
	p.at(10*s, core.Wanted)
	require.True(t, p.acknowledged(10*s+100*ms, 10*s).Began)
	require.Equal(t, 10*s+800*ms, p.Heart.Deadline, "counted from another instant")
	p.at(10*s+250*ms, core.Ticked)
	p.at(10*s+500*ms, core.Ticked)
	require.False(t, p.acknowledged(10*s+600*ms, 10*s+500*ms).Began)
	p.acknowledged(10*s+600*ms, 10*s+250*ms) // out of order
	require.Equal(t, 11*s+300*ms, p.Heart.Deadline)
	require.EqualValues(t, 1, p.Stretch)
	p.at(10*s+750*ms, core.Ticked)

	e := p.at(11*s+300*ms, core.Ticked)
	require.True(t, e.Suspend, "at the deadline, not after it")
	require.True(t, e.Beat)
	require.False(t, p.Sure())
	require.False(t, p.acknowledged(11*s+550*ms, 10*s+750*ms).Began, "its own deadline has passed")
	require.True(t, p.acknowledged(11*s+560*ms, 11*s+300*ms).Began)
	require.EqualValues(t, 2, p.Stretch, "another one")
}

// An acknowledgement that is read at the deadline does not continue the stretch: it begins another
// one, in which the win must be proven again.
func TestHeartLateAcknowledgement(t *testing.T) {
	p := newPulse(t)
	p.at(10*s, core.Wanted)
	p.acknowledged(10*s, 10*s)
	p.at(10*s+700*ms, core.Ticked)
	e := p.acknowledged(10*s+800*ms, 10*s+700*ms)
	require.True(t, e.Suspend, "it continues the stretch")
	require.True(t, e.Began)
	require.EqualValues(t, 2, p.Stretch)
	require.Equal(t, 11*s+500*ms, p.Heart.Deadline)
}

// If etcd refuses to write the key, and it was never written, the lease alone counts.
func TestHeartMute(t *testing.T) {
	p := newPulse(t)
	p.at(10*s, core.Wanted)
	p.at(10*s+250*ms, core.Ticked)
	require.False(t, p.at(10*s+260*ms, core.Forbidden).Began, "the other one may be carried out")
	require.True(t, p.at(10*s+270*ms, core.Forbidden).Began)
	require.Equal(t, core.Mute, p.Pulse)
	require.True(t, p.Sure())
	require.Equal(t, core.HeartEffects{}, p.at(90*s, core.Ticked))
	require.Equal(t, core.HeartEffects{}, p.at(90*s, core.Unwanted))

	p = newPulse(t)
	p.at(10*s, core.Wanted)
	p.at(10*s+250*ms, core.Ticked)
	p.at(10*s+260*ms, core.Missed)
	p.at(10*s+270*ms, core.Forbidden)
	require.False(t, p.Sure(), "the first one may have been carried out")
	require.Equal(t, core.Barred, p.Pulse, "nobody leads with this session, and nobody evicts it")
	require.Equal(t, core.HeartEffects{}, p.at(90*s, core.Wanted))
}

// With heartbeats a place in the queue does not prove a win, however it was learnt. Only the answer
// to a request for that proof does.
func TestPlacesAreNoProofs(t *testing.T) {
	first := core.Position{Complete: true, Revision: 5}
	for name, c := range map[string]core.Candidate{
		"registered":      {Phase: core.Entering, Want: core.Lead, Beats: true, Asked: core.Ask{Request: core.Register}},
		"registers alone": {Phase: core.Entering, Want: core.LeadNow, Beats: true, Asked: core.Ask{Request: core.RegisterAlone}},
	} {
		next, _ := core.Step(c, core.Event{Kind: core.Registered, Token: 5, Position: first})
		require.Equal(t, core.Proving, next.Phase, "%s: a place is no proof", name)
		require.Equal(t, core.Look, next.Asked.Request, name)
		next, _ = core.Step(next, core.Event{Kind: core.Looked, Token: 5, Position: first})
		require.Equal(t, core.Leading, next.Phase, name)
	}
	// It was found to be the oldest when it did not want to lead, for example while a tenure was
	// suspended.
	waits := core.Candidate{Phase: core.Waiting, Want: core.Queue, Token: 5, Position: first, Beats: true}
	next, _ := core.Step(waits, core.Event{Kind: core.Campaign, Want: core.Lead})
	require.Equal(t, core.Proving, next.Phase, "a place of long ago is no proof")
}
