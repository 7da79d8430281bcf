package demo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// lively is a writer that tells when nobody takes what is written.
type lively struct {
	out  io.Writer
	gone context.CancelCauseFunc
}

func (l *lively) Write(p []byte) (int, error) {
	n, err := l.out.Write(p)
	if err != nil {
		l.gone(fmt.Errorf("writing the story: %w", err))
	}
	return n, err
}

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
	pending []tapeLine // in no order
	timer   *time.Timer
}

// tapeLine is a line with its time, and what explains it.
type tapeLine struct {
	at   time.Time
	rank rank
	text []string
}

// rank orders what happened within the same millisecond, which the paper cannot
// tell apart: causes before effects before those who look on.
type rank int

const (
	rankAct rank = iota
	rankCandidate
	rankOnlooker
)

// at puts a line with its time into place. It does not block on the output.
func (t *tape) at(when time.Time, r rank, text ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, tapeLine{when.Round(0).Truncate(time.Millisecond), r, text})
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
			fmt.Fprintf(t.out, "%s  %s\n", t.style.paint(dim, offset), text)
		}
	}
	t.pending = t.pending[:0]
}
