package transcript

import (
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Live formats messages as they arrive. The zero value is ready to use; it must not be copied, and
// is not safe for concurrent use.
type Live struct {
	// asked is the time of the newest request of a call that has no answer yet.
	asked map[int]time.Duration
}

// Entries returns the entries of one message, with its times, IDs and revisions unchanged.
func (l *Live) Entries(m wiretap.Message) []Entry {
	if l.asked == nil {
		l.asked = make(map[int]time.Duration)
	}
	entries := say(m, "", raw{})
	switch m.Kind {
	case wiretap.Request:
		l.asked[m.Call] = m.At
	case wiretap.Answer:
		if at, ok := l.asked[m.Call]; ok && entries[0].Kind != Event {
			entries[0].Took = m.At - at
			delete(l.asked, m.Call)
		}
	case wiretap.End:
		delete(l.asked, m.Call)
	case wiretap.Note:
	}
	return entries
}
