package story

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// SettleTime is how long a line waits for lines of other processes that belong
// before it. Nobody notices it, and effects do not come before their causes.
const SettleTime = 60 * time.Millisecond

// Tape puts lines of several processes on paper in the order of their times. Made by
// NewTape; all methods are safe for concurrent use.
type Tape struct {
	out   io.Writer
	start time.Time
	style Style

	mu      sync.Mutex
	pending []tapeLine // in no order
	timer   *time.Timer
}

// NewTape returns a tape on which times are seconds since now.
func NewTape(out io.Writer, style Style) *Tape {
	return &Tape{out: out, start: time.Now().Round(0).Truncate(time.Millisecond), style: style}
}

// Start is the beginning of its time, on the wall clock.
func (t *Tape) Start() time.Time { return t.start }

// tapeLine is a line with its time, and what explains it.
type tapeLine struct {
	at   time.Time
	rank Rank
	text []string
}

// Rank orders what happened within the same millisecond, which the paper cannot
// tell apart: causes before effects before those who look on.
type Rank int

// The ranks.
const (
	Cause Rank = iota
	Effect
	Onlooker
)

// At puts a line with its time into place. It does not block on the output.
func (t *Tape) At(when time.Time, r Rank, text ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, tapeLine{when.Round(0).Truncate(time.Millisecond), r, text})
	if t.timer == nil {
		t.timer = time.AfterFunc(SettleTime, t.Flush)
	}
}

// Say prints untimed lines, after all that were put in place before.
func (t *Tape) Say(lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print()
	for _, line := range lines {
		fmt.Fprintln(t.out, line)
	}
}

// Flush prints what is pending.
func (t *Tape) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print()
}

// print needs mu.
func (t *Tape) print() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	slices.SortStableFunc(t.pending, func(a, b tapeLine) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.rank, b.rank))
	})
	for _, line := range t.pending {
		// Names and numbers are ours or etcd's; nothing of strangers is printed.
		offset := fmt.Sprintf("%7.3f", line.at.Sub(t.start).Seconds())
		for i, text := range line.text {
			if i > 0 {
				offset = fmt.Sprintf("%7s", "")
			}
			fmt.Fprintf(t.out, "%s  %s\n", t.style.Paint(Dim, offset), text)
		}
	}
	t.pending = t.pending[:0]
}
