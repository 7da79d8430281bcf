package diagram

import (
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
)

// keys draws a bar for each key while the key is in etcd.
type keys struct {
	draw func(look, lane string, offset, from, to int)
	// queue has the keys that are in etcd, oldest first; lane has the lane of each key, and since
	// the height at which the open part of its bar began.
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

// change applies an entry's keys, at a height. A key that becomes the oldest gets a new piece.
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
			continue // it was put before the recording began
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

// end draws the piece of a key's bar that ends here. If a lane has several keys, the bar of the
// oldest one is on the lifeline, and the others are to its right.
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

// close draws the bars that are still open.
func (b *keys) close(y int) {
	for _, k := range b.queue {
		b.end(k, b.oldest(k), y)
	}
}
