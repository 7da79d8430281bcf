package scenario

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Fact is one thing that happened, of which JSON is what a participant reports.
type Fact[F any] interface {
	story.Instant
	// Stamped returns the fact with a time.
	Stamped(time.Time) F
	// By returns the fact as one that a participant reported.
	By(*Participant) F
	// Exited returns the fact that a participant's process has ended: with an exit
	// code, -1 after a signal, and the last line of its stderr.
	Exited(p *Participant, code int, complaint string) F
}

// Line is how something is told to people.
type Line struct {
	Rank story.Rank
	Who  string
	Ink  story.Ink
	// Text is empty for what is not told. More follows below it.
	Text, More string
	// Why is told the first time.
	Why string
	// Once, if not empty, is told once in a step: no other line with the same is.
	Once string
}

// Tell records a fact and tells it. One without a time is of now. Safe for concurrent use.
func (e *Env[F]) Tell(f F) {
	at := f.When()
	if at.IsZero() {
		at = time.Now()
	}
	f = f.Stamped(at.Round(0)) // as the times of other processes are
	e.History.Add(f)
	if e.JSON {
		e.lines.Print(f)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.print(f.When(), e.plan.Words(f))
}

// Note tells something that is no fact of the History. Safe for concurrent use.
func (e *Env[F]) Note(v story.Instant, line Line) {
	if e.JSON {
		e.lines.Print(v)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.print(v.When(), line)
}

// print needs mu.
func (e *Env[F]) print(at time.Time, l Line) {
	if l.Text == "" || e.step[l.Once] {
		return
	}
	if l.Once != "" {
		e.step[l.Once] = true
	}
	width := e.plan.Width()
	lines := []string{e.Style.Paint(l.Ink, fmt.Sprintf("%-*s %s", width, l.Who, l.Text))}
	if l.More != "" {
		lines = append(lines, e.dim("  "+l.More))
	}
	if l.Why != "" && !e.once[l.Why] {
		e.once[l.Why] = true
		lines = append(lines, e.dim("  ("+l.Why+")"))
	}
	e.Tape.At(at, l.Rank, lines...)
}

// dim is a text beside the names.
func (e *Env[F]) dim(text string) string {
	return e.Style.Paint(story.Dim, fmt.Sprintf("%*s %s", e.plan.Width(), "", text))
}

// Aside tells people something that is no fact.
func (e *Env[F]) Aside(format string, args ...any) {
	if !e.JSON {
		e.Tape.At(time.Now(), story.Cause, e.dim(fmt.Sprintf(format, args...)))
	}
}

// Say tells people something without a time, after all that was told before.
func (e *Env[F]) Say(lines ...string) {
	if !e.JSON {
		e.Tape.Say(lines...)
	}
}

// Margin is where the names begin.
const Margin = "         "
