package core

import (
	"iter"
	"time"
)

// Pace is what follows from a session's heartbeats. The zero value: it has none.
type Pace struct {
	// Every is the time between two beats. After Timeout without one a successor may evict.
	Every, Timeout time.Duration
	// Margin is subtracted from Timeout: it covers clocks of candidates whose rates differ by
	// less than Margin / Timeout.
	Margin time.Duration
}

// LeastTimeout is the shortest Timeout: on a busy machine timers go off up to 120 ms late.
const LeastTimeout = 500 * time.Millisecond

// Deadline is the first instant at which a leader is not certain whose newest beat was sent
// after the reading sent.
func (p Pace) Deadline(sent time.Duration) time.Duration { return sent + p.Timeout - p.Margin }

// Pulse is what a heart does.
type Pulse uint8

const (
	// Still means: nobody wants beats.
	Still Pulse = iota
	// Unsure means: beats are sent, and none counts now. Nobody leads.
	Unsure
	// Certain means: a stretch goes on. Until Heart.Deadline nobody evicts.
	Certain
	// Mute means: etcd never took a beat and refuses them, so there is no key of them and nobody
	// ever evicts. It stays so.
	Mute
	// Barred means: etcd refuses beats, and may have taken one before. Nobody leads any more, for a successor
	// that sees it may evict, and the session is given up. It stays so.
	Barred

	pulses
)

// String returns the name in lower case.
func (p Pulse) String() string {
	return [pulses]string{"still", "unsure", "certain", "mute", "barred"}[p]
}

// Pulses are all of them, in the order of the constants.
func Pulses() iter.Seq[Pulse] { return all(pulses) }

// Heart is the state of a session's heartbeats, a plain value (decision 0029). All instants are
// readings of the session's clock, which goes on while the machine sleeps.
//
// Invariant: while Certain, nobody who keeps to the rules evicts before Deadline: some beat that counts was
// sent after Deadline - (Timeout - Margin).
type Heart struct {
	Pulse Pulse
	Pace  Pace
	// Deadline is the end of the stretch that goes on; while Certain.
	Deadline time.Duration
	// Stretch counts the stretches that have begun. Since is the revision of the beat with which the last
	// one did: a proof in this stretch must be of it, or a later one.
	Stretch uint64
	Since   int64
	// Next is when the next beat is to be sent; while Unsure or Certain.
	Next time.Duration
	// Flying counts the beats under way. Tried says that one may have been carried out.
	Flying int
	Tried  bool
}

// HeartKind is a kind of event of a heart.
type HeartKind uint8

const (
	// Ticked means: somebody has looked at the clock, a timer or a caller.
	Ticked HeartKind = iota
	// Wanted means: a candidate leads, or asks whether it does.
	Wanted
	// Unwanted means: none does any more.
	Unwanted
	// Acknowledged means: a beat was put into etcd, at HeartEvent.Revision, that was sent after the
	// reading HeartEvent.Sent.
	Acknowledged
	// Missed means: a beat failed, or its outcome is not known.
	Missed
	// Forbidden means: etcd refused a beat, and took none of it, and will go on to.
	Forbidden

	heartKinds
)

// String returns the name.
func (k HeartKind) String() string {
	return [heartKinds]string{"Ticked", "Wanted", "Unwanted", "Acknowledged", "Missed", "Forbidden"}[k]
}

// HeartKinds are all kinds of events of a heart, in the order of the constants.
func HeartKinds() iter.Seq[HeartKind] { return all(heartKinds) }

// HeartEvent is what a heart learns.
type HeartEvent struct {
	Kind HeartKind
	// Now is a reading from after it was learnt.
	Now time.Duration
	// Silent says why the application is not believed to be alive: then it does not beat.
	Silent error
	Sent   time.Duration
	// Revision is the beat's.
	Revision int64
}

// HeartEffects are what has to be done after a step, in the order of the fields.
type HeartEffects struct {
	// Suspend says that a stretch has ended that was wanted still: leading contexts end first.
	Suspend bool
	// Began says that a stretch has begun, or that none is needed any more.
	Began bool
	// Beat says that a beat is to be sent; exactly one of Acknowledged, Missed and Forbidden is to
	// follow. Delete says that the key of beats is to be deleted: nobody needs it, and nothing is
	// under way that puts it.
	Beat, Delete bool
	// Timer is the reading at which Ticked is to come at the latest; 0: never.
	Timer time.Duration
}

// Sure reports whether a stretch goes on, or none is needed.
func (h *Heart) Sure() bool { return h.Pulse == Certain || h.Pulse == Mute }

// over reports whether no beat is wanted, and none is under way.
func (h *Heart) over() bool { return h.Pulse == Still && h.Flying == 0 }

// StepHeart returns the state after an event and the effects to carry out.
func StepHeart(h Heart, e HeartEvent) (Heart, HeartEffects) {
	next := h
	if h.Pulse == Certain && e.Now >= h.Deadline {
		// Before anything else is believed: an acknowledgement may have waited in a buffer while
		// this process was stopped. It continues nothing.
		next.Pulse = Unsure
	}
	ended := next.Pulse != h.Pulse
	if e.Kind >= Acknowledged {
		next.Flying--
	}
	HeartTable[next.Pulse][e.Kind].Do(&next, e)
	effects := HeartEffects{
		Suspend: ended,
		Began:   next.Sure() && (!h.Sure() || next.Stretch != h.Stretch),
		Delete:  next.Tried && next.over() && !h.over(),
	}
	if next.Pulse == Unsure || next.Pulse == Certain {
		if e.Now >= next.Next {
			next.Next = e.Now + next.Pace.Every
			if effects.Beat = e.Silent == nil; effects.Beat {
				next.Flying++
			}
		}
		effects.Timer = next.Next
		if next.Pulse == Certain {
			effects.Timer = min(next.Next, next.Deadline)
		}
	}
	return next, effects
}

// HeartRule is what happens at an event, whatever else is due.
type HeartRule struct {
	// Text says so, for the documentation.
	Text string
	// Do changes the state. It must not keep or change anything else.
	Do func(h *Heart, e HeartEvent)
}

// HeartTable has the rule for each pulse and each event of a heart. Before any of them applies, a stretch
// whose deadline has passed ends. After it, a beat is sent if that is due.
var HeartTable = [pulses][heartKinds]HeartRule{
	Still: {
		Ticked:       {"nothing to do", calm},
		Wanted:       {"beats", func(h *Heart, e HeartEvent) { h.Pulse, h.Next = Unsure, e.Now }},
		Unwanted:     {"nothing to do", calm},
		Acknowledged: tried,
		Missed:       tried,
		Forbidden:    {"nothing to do", calm},
	},
	Unsure: {
		Ticked:       {"nothing to do", calm},
		Wanted:       {"goes on", calm},
		Unwanted:     rest,
		Acknowledged: {"begins a stretch, if the beat's own deadline is ahead", acknowledged},
		Missed:       tried,
		Forbidden:    {"none is under way: if none was ever carried out the lease alone counts, and else the session is lost", forbidden},
	},
	Certain: {
		Ticked:       {"nothing to do", calm},
		Wanted:       {"goes on", calm},
		Unwanted:     rest,
		Acknowledged: {"moves the deadline, if the beat's own is later", acknowledged},
		Missed:       tried,
		Forbidden:    {"nothing to do: the key that is there counts", calm},
	},
	Mute:   {Ticked: stays, Wanted: stays, Unwanted: stays, Acknowledged: stays, Missed: stays, Forbidden: stays},
	Barred: {Ticked: stays, Wanted: stays, Unwanted: stays, Acknowledged: stays, Missed: stays, Forbidden: stays},
}

var (
	rest  = HeartRule{"the stretch is over; deletes the key", func(h *Heart, _ HeartEvent) { h.Pulse = Still }}
	tried = HeartRule{"notes that there may be a key to delete", func(h *Heart, _ HeartEvent) { h.Tried = true }}
	stays = HeartRule{"nothing to do", calm}
)

func calm(*Heart, HeartEvent) {}

// acknowledged counts a beat from when it was sent, not from its acknowledgement.
func acknowledged(h *Heart, e HeartEvent) {
	h.Tried = true
	deadline := h.Pace.Deadline(e.Sent)
	switch {
	case e.Now >= deadline:
	case h.Pulse == Certain:
		h.Deadline = max(h.Deadline, deadline)
	default:
		h.Pulse, h.Deadline, h.Since = Certain, deadline, e.Revision
		h.Stretch++
	}
}

func forbidden(h *Heart, _ HeartEvent) {
	switch {
	case h.Flying > 0:
	case h.Tried:
		h.Pulse = Barred
	default:
		h.Pulse = Mute
	}
}
