package oracle

// Exits checks that processes end with the code that what became of them calls for:
// Event.Code of the last word about each.
func Exits(h *History) []Violation {
	var out []Violation
	want, last := map[string]int{}, map[string]Kind{}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined, Ended, Failed, Crashed:
			want[e.Who], last[e.Who] = e.Code, e.Kind
		case Exited:
			if e.Code != want[e.Who] {
				out = append(out, violated("exits", e.At, "%s ended with %d, not %d, after it had %s: %s", e.Who, e.Code, want[e.Who], last[e.Who], e.Text))
			}
		}
	}
	return out
}
