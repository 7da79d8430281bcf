package diagram

import (
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
)

// bars are the times that keys are in etcd, by lane.
type bars struct {
	drawn []piece
	// queue are the keys that are in etcd, oldest first; lane says whose, since where the
	// part of the bar that is not closed began.
	queue []string
	lane  map[string]string
	since map[string]int
}

// piece is one piece of one bar.
type piece struct {
	lane, kind string
	row        int // of several beside one lifeline
	from, to   int
}

func (b piece) offset() int { return 2 + (bar+2)*b.row - (bar+4)*boolean(b.row == 0)/2 }

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// oldest reports whether no key of the same election is older.
func (b *bars) oldest(key string) bool {
	election := key[:strings.LastIndexByte(key, '/')+1]
	for _, k := range b.queue {
		if strings.HasPrefix(k, election) {
			return k == key
		}
	}
	return false
}

// change takes an entry's keys in, at a height. Whoever becomes the oldest has a new piece.
func (b *bars) change(e transcript.Entry, y int) {
	if len(e.Gained)+len(e.Gone) == 0 {
		return
	}
	if b.since == nil {
		b.since = make(map[string]int)
	}
	before := make(map[string]bool, len(b.queue))
	for _, k := range b.queue {
		before[k] = b.oldest(k)
	}
	for _, k := range e.Gone {
		if !slices.Contains(b.queue, k) {
			continue // it was there before anything was written down
		}
		b.end(k, before[k], y)
		b.queue = slices.DeleteFunc(b.queue, func(q string) bool { return q == k })
	}
	for _, k := range b.queue {
		if !before[k] && b.oldest(k) {
			b.end(k, false, y)
			b.since[k] = y
		}
	}
	for _, k := range e.Gained {
		b.queue, b.lane[k], b.since[k] = append(b.queue, k), e.Lane, y
	}
}

// end draws the piece of a key's bar that ends here.
func (b *bars) end(key string, oldest bool, y int) {
	kind := "key"
	if oldest {
		kind = "oldest"
	}
	lane, row := b.lane[key], 0
	for _, k := range b.queue { // the others of this lane
		if k == key {
			break
		}
		if b.lane[k] == lane {
			row++
		}
	}
	b.drawn = append(b.drawn, piece{lane: lane, kind: kind, row: row, from: b.since[key], to: y})
}

// close draws what is still open.
func (b *bars) close(y int) {
	for _, k := range b.queue {
		b.end(k, b.oldest(k), y)
	}
}
