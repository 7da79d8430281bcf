package oracle

import (
	"maps"
	"slices"
)

// Overtaken checks the order of wins by what participants tell, without the store (G5):
// nobody wins while an older candidate stands, from when it joined with its token to when
// it told of its end, was killed or stopped, or its key was taken away.
func Overtaken(h *History) []Violation {
	var out []Violation
	stands := map[int64]string{} // by token
	token := map[string]int64{}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined:
			if e.Token != 0 {
				stands[e.Token], token[e.Who] = e.Who, e.Token
			}
		case Failed, Ended, Crashed, Stopped:
			delete(stands, token[e.Who])
		case Removed:
			delete(stands, e.Token)
		case Won:
			for _, older := range slices.Sorted(maps.Keys(stands)) {
				if older < e.Token {
					out = append(out, violated("overtaken", e.At, "%s (token %d) won past %s, which stood with %d", e.Who, e.Token, stands[older], older))
				}
			}
		}
	}
	return out
}
