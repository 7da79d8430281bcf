package oracle

import "slices"

// Transfers checks what the one who asked for a transfer was told: at the revision of
// its success the target was alive and the oldest; when the leader that gave way had
// gone, nobody else was the oldest before the target; and, where the order was to be
// kept, those others who stood before and stand after it are in the order in which they
// were, unless they left by themselves in between: each is in the life in which it was,
// or in the one to which it stepped back.
func Transfers(h *History) []Violation {
	var out []Violation
	q := h.queue()
	for _, e := range h.Events {
		if e.Kind != Transferred {
			continue
		}
		target, leader := q.byToken(e.Token), q.byToken(e.Proof)
		if target == nil || q.oldest(e.Commit) != target {
			out = append(out, violated("transfers", e.At, "token %d was reported to lead at revision %d, and was not alive and the oldest", e.Token, e.Commit))
			continue
		}
		if leader != nil && leader.removed {
			if next := q.oldest(leader.gone); next != target {
				out = append(out, violated("transfers", e.At, "token %d was to lead after token %d, and token %d was the next", e.Token, e.Proof, next.create))
			}
		}
		if e.Text == KeepsOrder {
			out = append(out, q.reordered(e)...)
		}
	}
	return out
}

// reordered finds two that changed places in a transfer.
func (q *queue) reordered(e Event) []Violation {
	type both struct{ before, after *life }
	var others []both
	for _, l := range q.lives {
		if !l.aliveAt(e.Plan) || l.create == e.Token || l.create == e.Proof {
			continue
		}
		for _, m := range q.lives {
			if m.key == l.key && m.aliveAt(e.Commit) && (m == l || slices.Contains(e.Tokens, m.create)) {
				others = append(others, both{l, m})
			}
		}
	}
	var out []Violation
	for i := 1; i < len(others); i++ { // ordered by before
		if a, b := others[i-1], others[i]; a.after.create > b.after.create {
			out = append(out, violated("transfers", e.At, "%s stood before %s (tokens %d, %d), and stands behind it after a transfer that was to keep the order (%d, %d)",
				a.before.key, b.before.key, a.before.create, b.before.create, a.after.create, b.after.create))
		}
	}
	return out
}
