package oracle

// Fence checks the store outside etcd that refuses older tokens: those that it
// accepted never go back, in its own order. It also checks the store: one that
// refuses what is no older than all before is no witness.
func Fence(h *History) []Violation {
	var out []Violation
	newest := int64(0)
	for _, e := range h.Events {
		switch {
		case e.Kind == FenceAccepted && e.Token < newest:
			out = append(out, violated("fence", e.At, "the store accepted token %d of %s after token %d", e.Token, e.Who, newest))
		case e.Kind == FenceRefused && e.Token >= newest:
			out = append(out, violated("fence", e.At, "the store refused token %d of %s, and the newest it had accepted was %d", e.Token, e.Who, newest))
		case e.Kind == FenceAccepted:
			newest = e.Token
		}
	}
	return out
}
