package oracle

import (
	"maps"
	"slices"
)

// Overtaken checks the order of wins by the reports of participants, without the store (G5): no
// candidate wins while an older one exists, from when that one joined with its token to when it
// reported its end, was killed or stopped, or its key was removed.
func Overtaken(h *History) []Violation {
	out := found{invariant: "overtaken"}
	candidates := map[int64]string{} // by token
	token := map[string]int64{}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined:
			if e.Token != 0 {
				candidates[e.Token], token[e.Who] = e.Who, e.Token
			}
		case Failed, Ended, Crashed, Stopped:
			delete(candidates, token[e.Who])
		case Removed:
			delete(candidates, e.Token)
		case Won:
			for _, older := range slices.Sorted(maps.Keys(candidates)) {
				if older < e.Token {
					out.add(e.At, "%s (token %d) won past %s, which had joined with %d", e.Who, e.Token, candidates[older], older)
				}
			}
		}
	}
	return out.all
}

// Wakes checks that a departure wakes one candidate: of those that existed before a step and had
// joined with their tokens, one, and no more than depart, is notified of a new predecessor, or
// wins, until the step is over.
func Wakes(h *History) []Violation {
	out := found{invariant: "wakes"}
	candidates := map[string]int64{} // tokens, by participant
	for i, e := range h.Events {
		switch e.Kind {
		case Joined:
			candidates[e.Who] = e.Token
		case Failed, Ended, Crashed:
			delete(candidates, e.Who)
		case Removed:
			maps.DeleteFunc(candidates, func(_ string, token int64) bool { return token == e.Token })
		case Acted:
			gone, moved := map[int64]bool{}, map[string]bool{}
			for _, token := range candidates {
				if token == e.Token {
					gone[token] = true
				}
			}
			rest := h.Events[i+1:]
			over := slices.IndexFunc(rest, func(e Event) bool { return e.Kind == Settled || e.Kind == Acted })
			if over >= 0 {
				rest = rest[:over]
			}
			for _, e := range rest {
				token, existed := candidates[e.Who]
				departs := e.Kind == Failed || e.Kind == Ended || e.Kind == Crashed
				switch {
				case existed && departs && (e.Token == 0 || e.Token == token):
					gone[token] = true
				case existed && (e.Kind == Moved || e.Kind == Won) && e.Token == token:
					moved[e.Who] = true
				}
			}
			if len(moved) == 0 || len(moved) > len(gone) {
				out.add(e.At, "%s of token %d: %d departed, %d moved", e.Text, e.Token, len(gone), len(moved))
			}
		}
	}
	return out.all
}

// InTime checks that leaders are succeeded: after a step that ends a leadership (Acted), a newer
// token wins by the instant that the step names; after a tenure that ended by itself, if another
// candidate wins at all, within the time to recover.
func InTime(h *History) []Violation {
	out := found{invariant: "in time"}
	acted := map[int64]bool{}
	newest := int64(0)
	for i, e := range h.Events {
		if e.Kind == Won {
			newest = max(newest, e.Token)
		}
		step := e.Kind == Acted && e.Until != 0
		acted[e.Token] = acted[e.Token] || step
		if !step && (e.Kind != Ended || acted[e.Token] || newest > e.Token) { // newer: it has been succeeded
			continue
		}
		next := slices.IndexFunc(h.Events[i:], func(won Event) bool { return won.Kind == Won && won.Token > e.Token })
		if next < 0 {
			if step {
				out.add(e.At, "%s of token %d: no candidate succeeded it", e.Text, e.Token)
			}
			continue
		}
		by := h.Events[i+next]
		if step && by.At > e.Until {
			out.add(e.At, "%s of token %d: %s leads after %v, later than %v", e.Text, e.Token, by.Who, by.At-e.At, e.Until-e.At)
		} else if !step && by.At > e.At+h.recovery() {
			out.add(e.At, "token %d ended: %s leads after %v, later than %v", e.Token, by.Who, by.At-e.At, h.recovery())
		}
	}
	return out.all
}

// Granted checks the guard if only the steps of the harness end tenures (G4): a write is refused if
// it was sent after the win of a newer token was reported, and only then; and each tenure that a
// step ended has been tested so.
func Granted(h *History) []Violation {
	out := found{invariant: "granted"}
	newest := int64(0)
	past := map[string]bool{}  // by write: sent by an older token
	tested := map[int64]bool{} // by token
	due := map[int64]bool{}    // by token: the tenures that must be tested
	for _, e := range h.Events {
		switch e.Kind {
		case Won:
			newest = max(newest, e.Token)
		case Sent:
			past[e.Write] = e.Token < newest
			tested[e.Token] = tested[e.Token] || past[e.Write]
		case Acked:
			if past[e.Write] {
				out.add(e.At, "a write with the old token %d was accepted", e.Token)
			}
		case Refused:
			if !past[e.Write] {
				out.add(e.At, "a write of the leader with token %d was refused: %s", e.Token, e.Text)
			}
		case Acted:
			due[e.Token] = due[e.Token] || e.Until != 0
		}
	}
	tenures, _ := h.tenures()
	for _, t := range tenures {
		if due[t.token] && !tested[t.token] && newest > t.token {
			out.add(h.end(), "no write was tried with the old token %d", t.token)
		}
	}
	return out.all
}
