package oracle

// I2 checks: a guarded write of token r that commits at revision v found the key with
// create revision r at v-1, r was the oldest there, and nobody newer had been
// elected at or before v; and whoever sent it is whose tenure r is. No exception at all.
func I2(h *History) []Violation {
	out := h.strangers()
	q := h.queue()
	newest := int64(0) // newest token elected so far
	rev := int64(1)
	for _, c := range h.Changes {
		for ; rev <= c.Rev; rev++ {
			if l := q.oldest(rev); l != nil {
				newest = max(newest, l.create)
			}
		}
		if !h.isRegister(c.Key) || c.byNobody() {
			continue
		}
		token, name, ok := parseWrite(c.Value)
		if !ok {
			out = append(out, violated("I2", c.At, "value %q was written by nobody known", c.Value))
			continue
		}
		l := q.byToken(token)
		switch {
		case l == nil || !l.aliveAt(c.Rev-1):
			out = append(out, violated("I2", c.At, "write %s of token %d committed at %d without its key", name, token, c.Rev))
		case q.oldest(c.Rev-1) != l:
			out = append(out, violated("I2", c.At, "write %s of token %d committed at %d while token %d was older", name, token, c.Rev, q.oldest(c.Rev-1).create))
		case c.Holder != "" && c.Holder != l.key:
			out = append(out, violated("I2", c.At, "write %s of token %d committed at %d for %s, whose token it is not", name, token, c.Rev, c.Holder))
		case newest > token:
			out = append(out, violated("I2", c.At, "write %s of token %d committed at %d after token %d was elected", name, token, c.Rev, newest))
		}
	}
	return out
}

// strangers finds writes under tokens that their senders never won.
func (h *History) strangers() []Violation {
	won := map[claim]bool{}
	for _, t := range h.tenures() {
		won[claim{t.who, t.token}] = true
	}
	var out []Violation
	for _, e := range h.Events {
		if e.Kind == Sent && e.Token != 0 && !won[claim{e.Who, e.Token}] {
			out = append(out, violated("I2", e.At, "%s sent write %s under token %d, which it never won", e.Who, e.Write, e.Token))
		}
	}
	return out
}
