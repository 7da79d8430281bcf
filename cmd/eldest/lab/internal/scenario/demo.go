package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Demo is the environment of a plan that is reported while it is carried out. Its methods are not
// safe for concurrent use, except Tell and Note.
type Demo struct {
	*inject.Field
	History[Fact]
	*teller
	plan         Plan
	participants map[string]*Participant // the newest of each name
	steps        int
}

// Participant is one process that takes part in a demo. A process that is started again is another one.
type Participant struct {
	*offspring.Process
	Name string
	// Member is the only member through which it reaches etcd, so that a partition of the member is
	// also one of its participants.
	Member *etcdtest.Member
}

// Step is a part of a plan, with an explanation for readers.
type Step struct {
	Title string
	Why   []string
	Do    func(context.Context) error
}

// stepLimit is how long a step may take, as a multiple of Expiry.
const stepLimit = 5

// Step carries out a step, below a numbered heading. Its error has the title.
func (d *Demo) Step(ctx context.Context, s Step) error {
	d.steps++
	d.newStep()
	lines := []string{"", d.bold(fmt.Sprintf("%d. %s", d.steps, s.Title))}
	for _, why := range s.Why {
		lines = append(lines, "   "+why)
	}
	d.Say(lines...)
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit*d.Expiry(), fmt.Errorf("it took longer than %v", stepLimit*d.Expiry()))
	defer cancel()
	if err := s.Do(ctx); err != nil {
		return fmt.Errorf("%q: %w", s.Title, err)
	}
	return nil
}

// Tell records a fact and reports it. The default of its time is now. Safe for concurrent use.
func (d *Demo) Tell(f Fact) {
	if f.At.IsZero() {
		f.At = time.Now()
	}
	f.At = f.At.Round(0) // without a monotonic reading, as the times of other processes
	d.Add(f)
	d.tell(f, func() Line { return d.plan.Words(f) })
}

// Act reports that an action is about to be done to a participant, to its member, or to its key with the
// token.
func (d *Demo) Act(a Action, p *Participant, key string, token eldest.Token) {
	d.Tell(Fact{Kind: Acted, Action: a, Participant: p.Name, Member: p.Member.Name, Key: key, Token: token})
}

// Note reports something that is not recorded in the history. Safe for concurrent use.
func (d *Demo) Note(v Timed, l Line) { d.tell(v, func() Line { return l }) }

// Start starts "eldest" with the given arguments, a name, and the flags that all participants have,
// and reports its facts. It blocks until ready returns true for one of these facts, and returns
// that fact.
func (d *Demo) Start(ctx context.Context, name string, member int, ready func(Fact) bool, words ...string) (said Fact, err error) {
	begin := time.Now()
	p := &Participant{Name: name, Member: d.Member(member)}
	cmd := exec.Command(d.Executable, slices.Concat(words, []string{name, "--json", "--ttl", d.TTL.String(),
		"--endpoints", p.Member.Endpoint, "--follow-members=false"})...) // it reaches this member alone
	p.Process, err = d.Spawner.Launch(cmd,
		func(line []byte) {
			var f Fact
			if json.Unmarshal(line, &f) == nil { // a process that is killed may leave half a line
				f.Participant, f.Member = name, p.Member.Name
				d.Tell(f)
			}
		},
		func(process *offspring.Process) {
			code, complaint := process.Result()
			d.Tell(Fact{Kind: Exited, Participant: name, Code: code, Cause: complaint})
		})
	if err != nil {
		return said, fmt.Errorf("starting %s: %w", name, err)
	}
	d.participants[name] = p
	found := false
	err = d.Await(ctx, name+" is ready", func(facts []Fact) bool {
		if f := Last(facts, func(f Fact) bool { return f.Participant == name && f.At.After(begin) && ready(f) }); f != nil {
			said, found = *f, true
		}
		return found || p.Gone()
	})
	if err == nil && !found {
		_, complaint := p.Result()
		err = fmt.Errorf("%s ended before it was ready: %s", name, complaint)
	}
	return said, err
}

// Participant returns the newest participant of that name, which must have been started.
func (d *Demo) Participant(name string) *Participant { return d.participants[name] }

// Signal sends a participant a signal.
func (p *Participant) Signal(sig syscall.Signal) error {
	if err := p.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal to %s: %w", p.Name, err)
	}
	return nil
}

// Await blocks until cond holds for the facts so far. If that takes longer than Expiry it returns
// an error that says what was awaited.
func (d *Demo) Await(ctx context.Context, what string, cond func([]Fact) bool) error {
	return d.History.Await(ctx, d.Expiry(), what, cond)
}

// AwaitEnd blocks until a participant's process has ended.
func (d *Demo) AwaitEnd(ctx context.Context, p *Participant) error {
	return d.Await(ctx, p.Name+" has ended", func([]Fact) bool { return p.Gone() })
}

// Cut partitions a member from all others, and reports if that member was etcd's leader. It blocks
// until the partition took effect.
func (d *Demo) Cut(ctx context.Context, m *etcdtest.Member) error {
	if d.Leads(ctx, m.Index, Election) {
		d.Aside("%s is etcd's leader; the other members must first elect another leader, which restarts all leases", m.Name)
	}
	return d.Field.Cut(ctx, etcdtest.BothWays, m.Index)
}

// End makes participants leave, one after the other, and reports what is left of an election when
// the last one has ended. leaving has the facts that are reported before each.
func (d *Demo) End(ctx context.Context, election string, leaving []Fact) error {
	for _, f := range leaving {
		f.Kind, f.Action = Acted, Leave
		d.Tell(f)
		p := d.Participant(f.Participant)
		if err := p.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		if err := d.AwaitEnd(ctx, p); err != nil {
			return err
		}
	}
	keys, leases, err := d.Leftovers(ctx, d.Expiry(), election)
	if err == nil {
		d.Tell(Fact{Kind: Left, Keys: len(keys), Leases: len(leases)})
	}
	return err
}

// Plan is what a demo does, and how that is reported and judged.
type Plan interface {
	// Perform carries the plan out, step by step.
	Perform(context.Context, *Demo) error
	// Words returns the line that reports a fact. It is called for one fact at a time.
	Words(Fact) Line
	// Check judges the facts, which are in the order of their times.
	Check(facts []Fact) []story.Verdict
	// Summary returns the results, as an object and as text.
	Summary(facts []Fact, r Result) Summary
}

// Result is how a run ended; --json ends with it, and with the additions of the plan.
type Result struct {
	Event string `json:"event"` // "summary"
	// OK means that everything held, the plan was completed, and nothing was left.
	OK         bool            `json:"ok"`
	DurationMS int64           `json:"duration_ms"`
	Checks     []story.Verdict `json:"checks"`
	// Broken is why the plan was not completed, or what was left.
	Broken string `json:"broken,omitempty"`
}

// Summary is the summary of a run: for programs an object; for readers rows below a title, the
// basis of the checks, and a note on the run.
type Summary struct {
	Object any
	Title  string
	Rows   []string
	Basis  string
	Note   string
}

// Run runs a plan on its own cluster. It blocks until the plan and the summary are complete or ctx
// ends, and leaves neither a process nor a file. width is the width of the names in lines. Errors:
// ErrViolated; ctx's cause, without a summary; or why the cluster did not start.
func Run(ctx context.Context, cfg Config, plan Plan, width int) error {
	// The reader of the output may end early, as in "eldest demo | head".
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	starting, started := context.WithTimeout(ctx, startTimeout)
	defer started()
	field, err := inject.Open(starting, etcdtest.Config{
		Members: cfg.Members, Heartbeat: Heartbeat, Election: Election, Dir: os.TempDir(), Command: []string{cfg.Executable, "etcd", "member"},
	})
	if err != nil {
		return err
	}
	d := &Demo{Field: field, teller: newTeller(cfg, width, cancel), plan: plan, participants: map[string]*Participant{}}
	broken := plan.Perform(ctx, d)
	// Later facts result from closing the demo.
	facts := InOrder(d.Facts())
	left := d.Close()
	if ctx.Err() != nil {
		d.Aside("interrupted: %s; nothing was checked", endWords(left))
		d.flush()
		return errors.Join(context.Cause(ctx), left)
	}
	return d.conclude(facts, broken, left)
}

// Introduce prints what is about to happen.
func (d *Demo) Introduce(format string, args ...any) {
	d.Say(fmt.Sprintf(format, args...),
		d.Style.Paint(story.Dim, "Everything runs on this machine and is removed afterwards. Times are seconds since the start. Ctrl-C ends it."))
}

// conclude judges the facts and prints the result.
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
		lines = append(lines, "", d.Style.Paint(story.Red, "The demo was not completed: "+r.Broken))
	}
	verdict := d.Style.Paint(story.Green, "All checks passed.")
	if !r.OK {
		verdict = d.Style.Paint(story.Red, "FAILED.")
	}
	return append(lines, "", fmt.Sprintf("%s %.1f s%s; %s.", verdict, float64(r.DurationMS)/1000, sum.Note, endWords(left)))
}

func (d *Demo) bold(text string) string { return d.Style.Paint(story.Bold, text) }

// endWords describes the result of Close.
func endWords(left error) string {
	if left != nil {
		return "not everything could be cleaned up: " + left.Error()
	}
	return "all processes are ended, all data is removed"
}
