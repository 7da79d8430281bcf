package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Plan is what a demo does, and how that is told and judged.
type Plan interface {
	// Perform carries the plan out, step by step.
	Perform(context.Context, *Demo) error
	// Words says how a fact is told to people. It is called for one fact at a time.
	Words(Fact) Line
	// Check judges the facts, which are in the order of their times.
	Check(facts []Fact) []story.Verdict
	// Summary words what was found.
	Summary(facts []Fact, r Result) Summary
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

// Run runs a plan on a cluster of its own. It blocks until the plan and the summary are over or
// ctx ends, and leaves neither a process nor a file. width is that of the names in lines.
// Errors: ErrViolated; ctx's cause, without a summary; or why the cluster did not start.
func Run(ctx context.Context, cfg Config, plan Plan, width int) error {
	// The reader of the output may go away, as in "eldest demo | head".
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	starting, started := context.WithTimeout(ctx, startTimeout)
	defer started()
	env, err := Open[Fact](starting, etcdtest.Config{
		Members: cfg.Members, Heartbeat: Heartbeat, Election: Election, Dir: os.TempDir(), Command: []string{cfg.Executable, "etcd", "member"},
	})
	if err != nil {
		return err
	}
	d := &Demo{Env: env, teller: newTeller(cfg, width, cancel), plan: plan, participants: map[string]*Participant{}}
	broken := plan.Perform(ctx, d)
	// What happens from here on is our own doing.
	facts := InOrder(d.Facts())
	left := d.Close()
	if ctx.Err() != nil {
		d.Aside("interrupted: %s; nothing was judged", endWords(left))
		d.flush()
		return errors.Join(context.Cause(ctx), left)
	}
	return d.conclude(facts, broken, left)
}

// Introduce tells what is about to happen.
func (d *Demo) Introduce(format string, args ...any) {
	d.Say(fmt.Sprintf(format, args...),
		d.Style.Paint(story.Dim, "Everything runs on this machine and is removed afterwards. Times are seconds since the start. Ctrl-C ends it."))
}

// conclude has the facts judged and tells what was found.
func (d *Demo) conclude(facts []Fact, broken, left error) error {
	r := Result{Event: "summary", DurationMS: time.Since(d.start).Milliseconds(), Checks: d.plan.Check(facts)}
	r.OK = broken == nil && left == nil && len(story.Failed(r.Checks)) == 0
	if err := errors.Join(broken, left); err != nil {
		r.Broken = err.Error()
	}
	sum := d.plan.Summary(facts, r)
	if d.JSON {
		d.object(sum.Object)
	}
	d.Say(d.summary(sum, r, left)...)
	if !r.OK {
		return errors.Join(ErrViolated, broken, left)
	}
	return nil
}

func (d *Demo) summary(sum Summary, r Result, left error) []string {
	lines := []string{"", d.bold(sum.Title)}
	for _, row := range sum.Rows {
		lines = append(lines, "  "+row)
	}
	lines = append(lines, "", d.bold(sum.Basis))
	lines = append(lines, d.Style.Verdicts(r.Checks)...)
	if r.Broken != "" {
		lines = append(lines, "", d.Style.Paint(story.Red, "The demo did not come to its end: "+r.Broken))
	}
	verdict := d.Style.Paint(story.Green, "All of it held.")
	if !r.OK {
		verdict = d.Style.Paint(story.Red, "NOT all of it held.")
	}
	return append(lines, "", fmt.Sprintf("%s %.1f s%s; %s.", verdict, float64(r.DurationMS)/1000, sum.Note, endWords(left)))
}

func (d *Demo) bold(text string) string { return d.Style.Paint(story.Bold, text) }

// endWords says what Close achieved.
func endWords(left error) string {
	if left != nil {
		return "not everything could be cleaned up: " + left.Error()
	}
	return "all processes are ended, all data is removed"
}
