package diagram

import (
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
)

// keys draws a bar for each key while it is in etcd.
type keys struct {
	draw func(look, lane string, offset, from, to int)
	// queue are the keys that are in etcd, oldest first; lane says whose, since where the
	// part of the bar that is not closed began.
	queue []string
	lane  map[string]string
	since map[string]int
}

// oldest reports whether no key of the same election is older.
func (b *keys) oldest(key string) bool {
	election := key[:strings.LastIndexByte(key, '/')+1]
	for _, k := range b.queue {
		if strings.HasPrefix(k, election) {
			return k == key
		}
	}
	return false
}

// change takes an entry's keys in, at a height. Whoever becomes the oldest has a new piece.
func (b *keys) change(e transcript.Entry, y int) {
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

// end draws the piece of a key's bar that ends here. Of several keys of one lane the oldest has
// its bar on the lifeline, and the others have theirs to the right of it.
func (b *keys) end(key string, oldest bool, y int) {
	look := "key"
	if oldest {
		look = "oldest"
	}
	lane, offset := b.lane[key], -BarWidth/2
	for _, k := range b.queue {
		if k == key {
			break
		}
		if b.lane[k] == lane {
			offset = max(2, offset) + BarWidth + 2
		}
	}
	b.draw(look, lane, offset, b.since[key], y)
}

// close draws what is still open.
func (b *keys) close(y int) {
	for _, k := range b.queue {
		b.end(k, b.oldest(k), y)
	}
}
