package oracle

// Granted checks the guard where nothing but the steps of the harness ends a tenure (G4):
// a write is refused if it was sent after the win of a newer token was told, and only
// then; and each tenure from which a step took leadership has been put to that test.
func Granted(h *History) []Violation {
	var out []Violation
	newest := int64(0)
	past := map[string]bool{}  // by write: sent by an older token
	tested := map[int64]bool{} // by token
	due := map[int64]bool{}    // by token: what the steps must put to the test
	for _, e := range h.Events {
		switch e.Kind {
		case Won:
			newest = max(newest, e.Token)
		case Sent:
			past[e.Write] = e.Token < newest
			tested[e.Token] = tested[e.Token] || e.Token < newest
		case Acked:
			if past[e.Write] {
				out = append(out, violated("granted", e.At, "a write with the old token %d was accepted", e.Token))
			}
		case Refused:
			if !past[e.Write] {
				out = append(out, violated("granted", e.At, "a write of the leader with token %d was refused: %s", e.Token, e.Text))
			}
		case Acted:
			due[e.Token] = due[e.Token] || e.Until != 0
		}
	}
	for _, t := range h.tenures() {
		if due[t.token] && !tested[t.token] && newest > t.token {
			out = append(out, violated("granted", end(h), "no write was tried with the old token %d", t.token))
		}
	}
	return out
}
