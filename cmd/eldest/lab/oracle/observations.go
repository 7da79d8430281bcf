package oracle

// Observations checks what those who only look on are told (G6): neither tokens nor
// revisions go back; who is said to lead did so at that revision, or, where the revision
// is not known, has won; nobody leads only where the queue was empty; its key names its
// lease; what is not known has a reason. When a step is over, its leader is what was told last.
func Observations(h *History) []Violation {
	var out []Violation
	won := map[int64]bool{}
	for _, t := range h.tenures() {
		won[t.token] = true
	}
	q := h.queue()
	tokens, revisions, last := map[string]int64{}, map[string]int64{}, map[string]Event{}
	for _, e := range h.Events {
		bad := func(format string, args ...any) { out = append(out, violated("G6", e.At, format, args...)) }
		if e.Kind == Settled {
			for who, o := range last {
				if o.Token != e.Token || o.Text == Unknown {
					bad("when token %d led, %s had been told: %s, token %d", e.Token, who, o.Text, o.Token)
				}
			}
		}
		if e.Kind != Observed {
			continue
		}
		last[e.Who] = e
		if e.Text == Unknown {
			if e.Reason == "" {
				bad("%s was told that it is unknown who leads, without a reason", e.Who)
			}
			continue
		}
		if e.Commit != 0 {
			if e.Commit < revisions[e.Who] {
				bad("%s was told revision %d after %d", e.Who, e.Commit, revisions[e.Who])
			}
			revisions[e.Who] = e.Commit
			truth := int64(0)
			if l := q.oldest(e.Commit); l != nil {
				truth = l.create
			}
			if e.Token != truth {
				bad("%s was told at revision %d: %s, token %d, and token %d led", e.Who, e.Commit, e.Text, e.Token, truth)
			}
		} else if e.Text == Led && !won[e.Token] {
			bad("%s was told of token %d, which nobody won with", e.Who, e.Token)
		}
		if e.Text != Led {
			continue
		}
		if e.Token < tokens[e.Who] {
			bad("%s was told token %d after %d", e.Who, e.Token, tokens[e.Who])
		}
		tokens[e.Who] = e.Token
		if e.Lease != 0 && e.Lease != LeaseOf(e.Key) {
			bad("%s was told lease %x of key %s", e.Who, e.Lease, e.Key)
		}
	}
	return out
}
