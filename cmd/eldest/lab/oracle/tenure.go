package oracle

import (
	"cmp"
	"slices"
	"time"
)

// spell is a time in which a tenure leads: from its win, or from when it led on after it was suspended.
type spell struct {
	*tenure
	from Event
	// unsure is the first instant at which the holder was not sure to lead any
	// more, or gave up, or was gone. nil: sure to the end of the log. Whoever was
	// stopped, and is not sure at its first word after that, ended with the stop: in
	// between it did nothing. One that says it is still sure never ended.
	unsure    *Event
	suspended *Event // it told of that
}

// takenBefore reports whether the leader's key or lease was taken away by hand
// before this was told: true at the revision of its proof, and overtaken while
// the news were under way.
func (s *spell) takenBefore() bool { return s.taken != nil && s.taken.Seq < s.from.Seq }

// last returns the spell that goes on, or was the last one, at an entry of the log.
func (t *tenure) last(seq int) *spell {
	last := t.spells[0]
	for _, s := range t.spells {
		if s.from.Seq <= seq {
			last = s
		}
	}
	return last
}

// tenure is one win and what was told of it afterwards.
type tenure struct {
	who   string
	token int64
	won   Event
	// joined is when its campaign began; by then it had its lease. beat is its heartbeats'
	// timeout.
	joined, beat time.Duration
	spells       []*spell // at least one, in the order of the log
	ended        []Event  // should be one
	crash        *Event
	taken        *Event // removal by hand of its key or lease
}

// tenures returns all wins in the order of the log.
func (h *History) tenures() []*tenure {
	var all []*tenure
	last := map[string]*tenure{} // by participant
	joined := map[string]*Event{}
	var removals []*Event
	stopped := map[string]*Event{}   // by participant, until its first word after that
	goesOn := map[string]bool{}      // those who were stopped, and are not any more
	find := func(e *Event) *tenure { // whose tenure an event tells of
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].who == e.Who && all[i].token == e.Token {
				return all[i]
			}
		}
		return nil
	}
	for i := range h.Events {
		e := &h.Events[i]
		switch e.Kind {
		case Joined:
			joined[e.Who] = e
		case Won:
			t := &tenure{who: e.Who, token: e.Token, won: *e}
			if j := joined[e.Who]; j != nil {
				t.joined, t.beat = j.At, j.Beat
			}
			t.begin(e)
			for _, r := range removals {
				if r.takes(t) {
					t.taken = r
				}
			}
			all, last[e.Who] = append(all, t), t
			if goesOn[e.Who] { // else it is the word of the instant at which it was stopped
				delete(stopped, e.Who)
			}
		case Resumed:
			if t := find(e); t != nil {
				t.begin(e)
			}
			if goesOn[e.Who] {
				delete(stopped, e.Who)
			}
		case Stopped:
			stopped[e.Who], goesOn[e.Who] = e, false
		case Continued:
			goesOn[e.Who] = true
		case Held:
			delete(stopped, e.Who)
		case LetGo, Resigning, Suspended, Ended:
			if t := find(e); t != nil {
				t.over(earlier(stopped[e.Who], e))
				if last := t.spells[len(t.spells)-1]; e.Kind == Suspended {
					last.suspended = e
				}
				if e.Kind == Ended {
					t.ended = append(t.ended, *e)
				}
			}
		case Crashed:
			if t := last[e.Who]; t != nil && len(t.ended) == 0 {
				t.crash = e
				t.over(earlier(stopped[e.Who], e))
			}
		case Removed:
			removals = append(removals, e)
			for _, t := range all {
				if t.taken == nil && e.takes(t) {
					t.taken = e
				}
			}
		}
	}
	return all
}

// earlier returns the stop that ended what e tells the end of, if there was one.
func earlier(stop, e *Event) *Event {
	if stop != nil {
		return stop
	}
	return e
}

// begin begins a spell, and over ends the last one, unless something has.
func (t *tenure) begin(e *Event) { t.spells = append(t.spells, &spell{tenure: t, from: *e}) }

func (t *tenure) over(e *Event) {
	if last := t.spells[len(t.spells)-1]; last.unsure == nil {
		last.unsure = e
	}
}

// spells returns all spells in the order of the log.
func (h *History) spells() []*spell {
	var all []*spell
	for _, t := range h.tenures() {
		all = append(all, t.spells...)
	}
	slices.SortFunc(all, func(a, b *spell) int { return cmp.Compare(a.from.Seq, b.from.Seq) })
	return all
}
