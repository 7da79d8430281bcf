package oracle

// Wakes checks that a departure is noticed by one candidate: of those who stood before a
// step and had joined with their tokens, somebody, and no more than depart, is told for whom
// it waits now, or wins, until the step is over.
func Wakes(h *History) []Violation {
	var out []Violation
	stands := map[string]int64{} // by participant
	for i, e := range h.Events {
		leave := func() { delete(stands, e.Who) }
		switch e.Kind {
		case Joined:
			stands[e.Who] = e.Token
		case Failed, Ended, Crashed:
			leave()
		case Removed:
			for who, token := range stands {
				if token == e.Token {
					delete(stands, who)
				}
			}
		case Acted:
			gone, moved := h.moves(i, stands)
			if moved == 0 || moved > gone {
				out = append(out, violated("wakes", e.At, "%s of token %d: %d left, %d moved", e.Text, e.Token, gone, moved))
			}
		}
	}
	return out
}

// moves counts those who depart and those who move in a step, of those who stand when it
// begins.
func (h *History) moves(step int, stands map[string]int64) (departed, moved int) {
	gone, told := map[int64]bool{}, map[string]bool{}
	for _, token := range stands {
		if token == h.Events[step].Token {
			gone[token] = true
		}
	}
	for _, e := range h.Events[step+1:] {
		token, stood := stands[e.Who]
		switch e.Kind {
		case Settled, Acted:
			return len(gone), len(told)
		case Failed, Ended, Crashed:
			if stood && (e.Token == 0 || e.Token == token) {
				gone[token] = true
			}
		case Moved, Won:
			if stood && e.Token == token {
				told[e.Who] = true
			}
		}
	}
	return len(gone), len(told)
}
