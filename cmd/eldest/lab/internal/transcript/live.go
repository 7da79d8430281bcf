package transcript

import "github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"

// Live formats messages as they arrive. The zero value is ready to use; it must not be copied, and is
// not safe for concurrent use.
type Live struct{ calls calls }

// Entries returns the entries of one message, with its times, IDs and revisions unchanged: one for
// each event of a watch, and one for any other message.
func (l *Live) Entries(m wiretap.Message) []Entry {
	entries := unchanged.entries(&m)
	for i := range entries {
		entries[i].At, entries[i].Connection, entries[i].Call = m.At, m.Connection, m.Call
	}
	if request := l.calls.request(&m); request != nil && m.Kind == wiretap.Answer && isAnswer(&m) {
		entries[0].Took = m.At - request.At
	}
	return entries
}
