package oracle

import "time"

// tenure is one win and what was told of it afterwards.
type tenure struct {
	who   string
	token int64
	won   Event
	// joined is when its campaign began; by then it had its lease.
	joined time.Duration
	// unsure is the first instant at which the holder was not sure to lead any
	// more, or gave up, or was gone. nil: sure to the end of the log. Whoever was
	// stopped, and is not sure at its first word after that, ended with the stop: in
	// between it did nothing. One that says it is still sure never ended.
	unsure *Event
	ended  []Event // should be one
	crash  *Event
	taken  *Event // removal by hand of its key or lease
}

// tenures returns all wins in the order of the log.
func (h *History) tenures() []*tenure {
	var all []*tenure
	last := map[string]*tenure{} // by participant
	joined := map[string]time.Duration{}
	removals := map[int64]*Event{}   // by token
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
			joined[e.Who] = e.At
		case Won:
			t := &tenure{who: e.Who, token: e.Token, won: *e, joined: joined[e.Who], taken: removals[e.Token]}
			all, last[e.Who] = append(all, t), t
			if goesOn[e.Who] { // else it is the word of the instant at which it was stopped
				delete(stopped, e.Who)
			}
		case Stopped:
			stopped[e.Who], goesOn[e.Who] = e, false
		case Continued:
			goesOn[e.Who] = true
		case Held:
			delete(stopped, e.Who)
		case LetGo, Resigning, Ended:
			if t := find(e); t != nil {
				if t.unsure == nil {
					t.unsure = earlier(stopped[e.Who], e)
				}
				if e.Kind == Ended {
					t.ended = append(t.ended, *e)
				}
			}
		case Crashed:
			if t := last[e.Who]; t != nil && len(t.ended) == 0 {
				t.crash = e
				if t.unsure == nil {
					t.unsure = earlier(stopped[e.Who], e)
				}
			}
		case Removed:
			removals[e.Token] = e
			for _, t := range all {
				if t.token == e.Token && t.taken == nil {
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

// takenBefore reports whether the winner's key or lease was taken away by hand
// before the win was told: true at the revision of its proof, and overtaken while
// the news were under way.
func (t *tenure) takenBefore() bool { return t.taken != nil && t.taken.Seq < t.won.Seq }
