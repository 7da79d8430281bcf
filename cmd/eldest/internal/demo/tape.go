package demo

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// settleTime is how long a line waits for lines of other processes that belong
// before it. Nobody notices it, and effects do not come before their causes.
const settleTime = 60 * time.Millisecond

// tape puts lines of several processes on paper in the order of their times. All
// methods are safe for concurrent use.
type tape struct {
	out   io.Writer
	start time.Time
	style Style

	mu      sync.Mutex
	pending []tapeLine
	timer   *time.Timer
}

type tapeLine struct {
	at   time.Time
	text string
}

// at puts a line with its time into place. It does not block on the output.
func (t *tape) at(when time.Time, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, tapeLine{when, text})
	if t.timer == nil {
		t.timer = time.AfterFunc(settleTime, t.flush)
	}
}

// say prints untimed lines, after all that were put in place before.
func (t *tape) say(lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print()
	for _, line := range lines {
		fmt.Fprintln(t.out, line)
	}
}

// flush prints what is pending.
func (t *tape) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print()
}

// print needs mu.
func (t *tape) print() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	slices.SortStableFunc(t.pending, func(a, b tapeLine) int { return a.at.Compare(b.at) })
	for _, line := range t.pending {
		// Names and numbers are ours or etcd's; nothing of strangers is printed.
		offset := fmt.Sprintf("%9.3f", line.at.Sub(t.start).Seconds())
		fmt.Fprintf(t.out, "%s  %s\n", t.style.paint(dim, offset), line.text)
	}
	t.pending = t.pending[:0]
}
