package core

import "time"

// Pace is the timing of a session's heartbeats. The zero value: it has none.
type Pace struct {
	// Every is the time between two heartbeats. After Timeout without one a successor may evict.
	Every, Timeout time.Duration
	// Margin is subtracted from Timeout: it covers clocks of candidates whose rates differ by
	// less than Margin / Timeout.
	Margin time.Duration
}

// LeastTimeout is the shortest Timeout: on a busy machine timers fire up to 120 ms late.
const LeastTimeout = 500 * time.Millisecond

// Deadline returns the first instant at which a leader is no longer certain, if its newest
// heartbeat was sent after the clock reading sent.
func (p Pace) Deadline(sent time.Duration) time.Duration { return sent + p.Timeout - p.Margin }

// Pulse is the state of a heart.
type Pulse uint8

const (
	// Still means: no candidate needs heartbeats.
	Still Pulse = iota
	// Unsure means: heartbeats are sent, and none counts now. No candidate of the session leads.
	Unsure
	// Certain means: there is a stretch. Until Heart.Deadline no candidate of the session is
	// evicted.
	Certain
	// Mute means: etcd never accepted a heartbeat and refuses them, so their key does not exist,
	// and no candidate of the session is ever evicted. This state is final.
	Mute
	// Barred means: etcd refuses heartbeats, and may have accepted one before. No candidate of the
	// session leads any more, because a successor that has seen that heartbeat may evict, and the
	// session is given up. This state is final.
	Barred

	pulses
)

// String returns the name in lower case.
func (p Pulse) String() string {
	return [pulses]string{"still", "unsure", "certain", "mute", "barred"}[p]
}

// Heart is the state of a session's heartbeats, a plain value (decision 0029). All instants are
// readings of the session's clock, which continues while the machine sleeps.
//
// Invariant: while Certain, no candidate that keeps to the rules evicts before Deadline: a
// heartbeat that counts was sent after Deadline - (Timeout - Margin).
type Heart struct {
	Pulse Pulse
	Pace  Pace
	// Deadline is the end of the present stretch; while Certain.
	Deadline time.Duration
	// Stretch counts the stretches that have begun. Since is the revision of the heartbeat with
	// which the last one began: a proof in this stretch must be of that revision, or a later one.
	Stretch uint64
	Since   int64
	// Next is when the next heartbeat is to be sent; while Unsure or Certain.
	Next time.Duration
	// Flying counts the heartbeats under way. Tried is true if one may have been carried out.
	Flying int
	Tried  bool
}

// HeartKind is a kind of event of a heart.
type HeartKind uint8

const (
	// Ticked means: the clock was read, by a timer or a caller.
	Ticked HeartKind = iota
	// Wanted means: a candidate leads, or checks whether it does.
	Wanted
	// Unwanted means: no candidate leads or checks any more.
	Unwanted
	// Acknowledged means: etcd accepted a heartbeat at HeartEvent.Revision. It was sent after the
	// reading HeartEvent.Sent.
	Acknowledged
	// Missed means: a heartbeat failed, or its outcome is not known.
	Missed
	// Forbidden means: etcd refused a heartbeat, did not carry it out, and will refuse the next
	// ones.
	Forbidden

	heartKinds
)

// String returns the name.
func (k HeartKind) String() string {
	return [heartKinds]string{"Ticked", "Wanted", "Unwanted", "Acknowledged", "Missed", "Forbidden"}[k]
}

// HeartEvent is what a heart receives.
type HeartEvent struct {
	Kind HeartKind
	// Now is a clock reading from after the event.
	Now time.Duration
	// Silent is why the application does not count as alive: then no heartbeat is sent. nil: it
	// does.
	Silent error
	Sent   time.Duration
	// Revision is the revision of the heartbeat.
	Revision int64
}

// HeartEffects are the actions after a step, in the order of the fields.
type HeartEffects struct {
	// Suspend is true if a stretch has ended that was still needed: leading contexts end first.
	Suspend bool
	// Began is true if a stretch has begun, or if none is needed any more.
	Began bool
	// Beat is true if a heartbeat is to be sent; exactly one of Acknowledged, Missed and Forbidden
	// must follow. Delete is true if the key of the heartbeats is to be deleted: no candidate needs
	// it, and no request that puts it is under way.
	Beat, Delete bool
	// Timer is the reading at which Ticked must come at the latest; 0: never.
	Timer time.Duration
}

// Sure reports whether there is a stretch, or none is needed.
func (h *Heart) Sure() bool { return h.Pulse == Certain || h.Pulse == Mute }

// over reports whether no heartbeat is needed, and none is under way.
func (h *Heart) over() bool { return h.Pulse == Still && h.Flying == 0 }

// StepHeart returns the state after an event and the effects to carry out.
func StepHeart(h Heart, e HeartEvent) (Heart, HeartEffects) {
	next := h
	if h.Pulse == Certain && e.Now >= h.Deadline {
		// This comes first: an acknowledgement may have waited in a buffer while this process was
		// stopped. It does not continue the stretch.
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

// HeartRule is what happens at an event, apart from a heartbeat that is due.
type HeartRule struct {
	// Text describes the rule, for the documentation.
	Text string
	// Do changes the state. It must not keep or change anything else.
	Do func(h *Heart, e HeartEvent)
}

// HeartTable has the rule for each pulse and each event of a heart. Before a rule applies, a
// stretch whose deadline has passed ends. After it, a heartbeat is sent if one is due.
var HeartTable = [pulses][heartKinds]HeartRule{
	Still: {
		Ticked:       {"nothing to do", calm},
		Wanted:       {"starts heartbeats", func(h *Heart, e HeartEvent) { h.Pulse, h.Next = Unsure, e.Now }},
		Unwanted:     {"nothing to do", calm},
		Acknowledged: tried,
		Missed:       tried,
		Forbidden:    {"nothing to do", calm},
	},
	Unsure: {
		Ticked:       {"nothing to do", calm},
		Wanted:       {"continues", calm},
		Unwanted:     rest,
		Acknowledged: {"begins a stretch, unless the heartbeat's own deadline has passed", acknowledged},
		Missed:       tried,
		Forbidden:    {"once none is under way: if none was ever carried out, only the lease counts; otherwise the session is lost", forbidden},
	},
	Certain: {
		Ticked:       {"nothing to do", calm},
		Wanted:       {"continues", calm},
		Unwanted:     rest,
		Acknowledged: {"moves the deadline, if the heartbeat's own is later", acknowledged},
		Missed:       tried,
		Forbidden:    {"nothing to do: the existing key counts", calm},
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

// acknowledged counts a heartbeat from its sending, not from its acknowledgement.
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
