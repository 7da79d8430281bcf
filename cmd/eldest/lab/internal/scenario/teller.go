package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// SettleTime is how long a line waits for lines of other processes that belong before it.
const SettleTime = 60 * time.Millisecond

// Margin is as wide as the times at the beginning of lines.
const Margin = "         "

// Rank orders events of the same millisecond, which the times of lines do not order: causes,
// effects, observations.
type Rank int

// The ranks.
const (
	Cause Rank = iota - 1
	Effect
	Seen
)

// Line is a fact as text.
type Line struct {
	Rank Rank
	Who  string
	Ink  story.Ink
	// Text is empty for a fact that is not printed. More is printed below it.
	Text, More string
	// Why is printed the first time only.
	Why string
	// Once, if not empty, is a name: of the lines with that name a step prints only the first.
	Once string
}

// teller prints facts: as JSON, an object a line, or as lines of text in the order of their times,
// although processes report late. Times are seconds since its start. Its methods may be called
// concurrently.
type teller struct {
	Config
	start time.Time
	width int                     // of the names
	gone  context.CancelCauseFunc // is called when the output cannot be written

	mu      sync.Mutex
	pending []entry
	timer   *time.Timer
	once    map[string]bool // the explanations that were printed
	step    map[string]bool // the names of lines that are not printed again in this step
}

type entry struct {
	at    time.Time
	rank  Rank
	lines []string
}

func newTeller(cfg Config, width int, gone context.CancelCauseFunc) *teller {
	return &teller{
		Config: cfg, start: time.Now().Round(0).Truncate(time.Millisecond), width: width, gone: gone,
		once: map[string]bool{}, step: map[string]bool{},
	}
}

// tell prints v, or its line.
func (t *teller) tell(v Timed, words func() Line) {
	if t.JSON {
		t.object(v)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := words()
	if l.Text == "" || t.step[l.Once] {
		return
	}
	if l.Once != "" {
		t.step[l.Once] = true
	}
	lines := []string{t.Style.Paint(l.Ink, fmt.Sprintf("%-*s %s", t.width, l.Who, l.Text))}
	if l.More != "" {
		lines = append(lines, t.dim("  "+l.More))
	}
	if l.Why != "" && !t.once[l.Why] {
		t.once[l.Why] = true
		lines = append(lines, t.dim("  ("+l.Why+")"))
	}
	t.put(v.When(), l.Rank, lines)
}

// Aside prints a remark that is no fact, unless the output is JSON.
func (t *teller) Aside(format string, args ...any) {
	if t.JSON {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(time.Now(), Cause, []string{t.dim(fmt.Sprintf(format, args...))})
}

// Say prints lines without a time, after everything before, unless the output is JSON.
func (t *teller) Say(lines ...string) {
	if t.JSON {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print()
	t.write(strings.Join(lines, "\n") + "\n")
}

func (t *teller) object(v any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // our own types can be encoded
	t.write(text.String())
}

// dim returns a dim text beside the names.
func (t *teller) dim(text string) string {
	return t.Style.Paint(story.Dim, fmt.Sprintf("%*s %s", t.width, "", text))
}

func (t *teller) newStep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.step)
}

// put queues lines to be printed in order. The caller holds mu, as for print and write.
func (t *teller) put(at time.Time, rank Rank, lines []string) {
	t.pending = append(t.pending, entry{at.Round(0).Truncate(time.Millisecond), rank, lines})
	if t.timer == nil {
		t.timer = time.AfterFunc(SettleTime, t.flush)
	}
}

func (t *teller) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print()
}

func (t *teller) print() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	slices.SortStableFunc(t.pending, func(a, b entry) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.rank, b.rank)) })
	for _, p := range t.pending {
		// Names and numbers come from this module or etcd; no untrusted text is printed.
		offset := fmt.Sprintf("%7.3f", p.at.Sub(t.start).Seconds())
		for _, line := range p.lines {
			t.write(t.Style.Paint(story.Dim, offset) + "  " + line + "\n")
			offset = fmt.Sprintf("%7s", "")
		}
	}
	t.pending = t.pending[:0]
}

func (t *teller) write(text string) {
	if _, err := io.WriteString(t.Out, text); err != nil {
		t.gone(fmt.Errorf("writing the output: %w", err))
	}
}
