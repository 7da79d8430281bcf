package transcript

import (
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Live writes messages down as they come. The zero value works; it must not be copied, and
// is for one goroutine at a time.
type Live struct {
	// asked is when the newest request of a call was seen that is not answered.
	asked map[int]time.Duration
}

// Entries are those of one message, in its own words: times, IDs and revisions are as they
// are.
func (l *Live) Entries(m wiretap.Message) []Entry {
	if l.asked == nil {
		l.asked = make(map[int]time.Duration)
	}
	entries := say(m, "", raw{})
	switch m.Kind {
	case wiretap.Request:
		l.asked[m.Call] = m.At
	case wiretap.Answer:
		if at, ok := l.asked[m.Call]; ok && entries[0].Kind == Answer {
			entries[0].Took = m.At - at
			delete(l.asked, m.Call)
		}
	case wiretap.End:
		delete(l.asked, m.Call)
	case wiretap.Note:
	}
	return entries
}
