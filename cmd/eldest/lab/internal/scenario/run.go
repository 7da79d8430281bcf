package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Plan is what is done, told and checked.
type Plan[F Fact[F]] interface {
	// Open prepares what the plan has of its own. After an error Close is called, too.
	Open(*Env[F]) error
	// Introduction is one line before all others.
	Introduction() string
	// Perform carries the plan out, step by step.
	Perform(context.Context) error
	// Close ends what the plan has of its own, whatever goes on.
	Close()
	// Check judges the facts, which are in the order of their times.
	Check(facts []F) []story.Verdict
	// Summary words what was found.
	Summary(facts []F, r Result) Summary

	// Words says how a fact is told. It is called for one fact at a time.
	Words(F) Line
	// Width is that of the names.
	Width() int
}

// Result is how a run ended; --json ends with it, and with what the plan adds.
type Result struct {
	Event string `json:"event"` // "summary"
	// OK says that everything held, the plan came to its end, and nothing was left.
	OK         bool            `json:"ok"`
	DurationMS int64           `json:"duration_ms"`
	Checks     []story.Verdict `json:"checks"`
	// Broken says why the plan did not come to its end, or what was left.
	Broken string `json:"broken,omitempty"`
}

// Summary is how a run is summed up: for programs an object; for people rows below a title,
// on what the checks rest, and what else there is to say of the run.
type Summary struct {
	Object any
	Title  string
	Rows   []string
	Basis  string
	Note   string
}

// Run runs a plan, from an empty machine to an empty machine: it blocks until the plan and
// the summary are over or ctx ends, and leaves neither a process nor a file. Errors:
// ErrViolated; ctx's cause, without a summary; or why the cluster did not start.
func Run[F Fact[F]](ctx context.Context, cfg Config, plan Plan[F]) error {
	// The reader of the output may go away, as in "eldest demo | head".
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cfg.Out = &story.Lively{Out: cfg.Out, Gone: cancel}

	e, err := open(ctx, cfg, plan)
	if err != nil {
		return err
	}
	e.Say(plan.Introduction(),
		e.Style.Paint(story.Dim, "Everything runs on this machine and is gone afterwards. Times are seconds since the start. Ctrl-C ends it."))
	broken := plan.Perform(ctx)
	// What happens from here on is our own doing.
	facts := e.History.Facts()
	left := e.close()
	if ctx.Err() != nil {
		e.Aside("interrupted: %s; nothing was judged", endWords(left))
		e.Tape.Flush()
		return errors.Join(context.Cause(ctx), left)
	}
	return e.conclude(facts, broken, left)
}

// Step runs one step of the plan below a numbered heading that says what to look for. Its
// error is the step's, with the title.
func (e *Env[F]) Step(title string, why []string, step func() error) error {
	e.steps++
	e.mu.Lock()
	clear(e.step)
	e.mu.Unlock()
	lines := []string{"", e.Style.Paint(story.Bold, fmt.Sprintf("%d. %s", e.steps, title))}
	for _, w := range why {
		lines = append(lines, "   "+w)
	}
	e.Say(lines...)
	if err := step(); err != nil {
		return fmt.Errorf("%q: %w", title, err)
	}
	return nil
}

// conclude has the facts judged and prints what was found.
func (e *Env[F]) conclude(facts []F, broken, left error) error {
	r := Result{Event: "summary", DurationMS: time.Since(e.Tape.Start()).Milliseconds(), Checks: e.plan.Check(facts)}
	r.OK = broken == nil && left == nil && len(story.Failed(r.Checks)) == 0
	if err := errors.Join(broken, left); err != nil {
		r.Broken = err.Error()
	}
	sum := e.plan.Summary(facts, r)
	if e.JSON {
		e.lines.Print(sum.Object)
	} else {
		e.Tape.Say(e.summary(sum, r, left)...)
	}
	if !r.OK {
		return errors.Join(ErrViolated, broken, left)
	}
	return nil
}

func (e *Env[F]) summary(sum Summary, r Result, left error) []string {
	lines := []string{"", e.Style.Paint(story.Bold, sum.Title)}
	for _, row := range sum.Rows {
		lines = append(lines, "  "+row)
	}
	lines = append(lines, "", e.Style.Paint(story.Bold, sum.Basis))
	lines = append(lines, e.Style.Verdicts(r.Checks)...)
	if r.Broken != "" {
		lines = append(lines, "", e.Style.Paint(story.Red, "The play did not come to its end: "+r.Broken))
	}
	verdict := e.Style.Paint(story.Green, "All of it held.")
	if !r.OK {
		verdict = e.Style.Paint(story.Red, "NOT all of it held.")
	}
	return append(lines, "", fmt.Sprintf("%s %.1f s%s; %s.", verdict, float64(r.DurationMS)/1000, sum.Note, endWords(left)))
}

// endWords says what close achieved.
func endWords(left error) string {
	if left != nil {
		return "not everything could be cleaned up: " + left.Error()
	}
	return "all processes are ended, all data is removed"
}
