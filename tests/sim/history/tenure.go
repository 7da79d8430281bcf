package history

// tenure is one win and what was told of it afterwards.
type tenure struct {
	who   string
	token int64
	won   Event
	// unsure is the first instant at which the holder was not sure to lead any
	// more, or gave up, or was gone. nil: sure to the end of the log.
	unsure *Event
	ended  []Event // should be one
	crash  *Event
	taken  *Event // removal by hand of its key or lease
}

// tenures returns all wins in the order of the log.
func (h *History) tenures() []*tenure {
	var all []*tenure
	last := map[string]*tenure{}     // by participant
	removals := map[int64]*Event{}   // by token
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
		case Won:
			t := &tenure{who: e.Who, token: e.Token, won: *e, taken: removals[e.Token]}
			all, last[e.Who] = append(all, t), t
		case LetGo, Resigning, Ended:
			if t := find(e); t != nil {
				if t.unsure == nil {
					t.unsure = e
				}
				if e.Kind == Ended {
					t.ended = append(t.ended, *e)
				}
			}
		case Crashed:
			if t := last[e.Who]; t != nil && len(t.ended) == 0 {
				t.crash = e
				if t.unsure == nil {
					t.unsure = e
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

// takenBefore reports whether the winner's key or lease was taken away by hand
// before the win was told: true at the revision of its proof, and overtaken while
// the news were under way.
func (t *tenure) takenBefore() bool { return t.taken != nil && t.taken.Seq < t.won.Seq }
