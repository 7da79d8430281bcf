package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Demo is the environment of a plan that is told while it is carried out. Its methods are for
// one goroutine, but for Tell and Note.
type Demo struct {
	*Env[Fact]
	*teller
	plan         Plan
	participants map[string]*Participant // the newest of each name
	steps        int
}

// Participant is one process that takes part in a demo. One that ended and comes back is another one.
type Participant struct {
	*offspring.Process
	Name string
	// Member is through which it reaches etcd: through no other, so that a member's
	// partition is its participants' as well.
	Member *etcdtest.Member
}

// Step is a part of a plan, with what people should look for.
type Step struct {
	Title string
	Why   []string
	Do    func(context.Context) error
}

// Step carries a step out, below a numbered heading. Its error has the title.
func (d *Demo) Step(ctx context.Context, s Step) error {
	d.steps++
	d.newStep()
	lines := []string{"", d.bold(fmt.Sprintf("%d. %s", d.steps, s.Title))}
	for _, why := range s.Why {
		lines = append(lines, "   "+why)
	}
	d.Say(lines...)
	if err := s.Do(ctx); err != nil {
		return fmt.Errorf("%q: %w", s.Title, err)
	}
	return nil
}

// Tell records a fact and tells it. One without a time is of now. Safe for concurrent use.
func (d *Demo) Tell(f Fact) {
	if f.At.IsZero() {
		f.At = time.Now()
	}
	f.At = f.At.Round(0) // as the times of other processes are
	d.Add(f)
	d.tell(f, func() Line { return d.plan.Words(f) })
}

// Note tells something that is not recorded in the history. Safe for concurrent use.
func (d *Demo) Note(v Timed, l Line) { d.tell(v, func() Line { return l }) }

// Start starts "eldest" with the given words, a name, and the flags that all participants have,
// and tells what it reports. It blocks until a fact that it reports says that it is ready, and
// returns that fact.
func (d *Demo) Start(ctx context.Context, name string, member int, ready func(Fact) bool, words ...string) (said Fact, err error) {
	begin := time.Now()
	p := &Participant{Name: name, Member: d.Member(member)}
	cmd := exec.Command(d.Executable, slices.Concat(words, []string{name, "--json", "--ttl", d.TTL.String(), "--endpoints", p.Member.Endpoint})...)
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

// Participant is the newest of that name, which was started.
func (d *Demo) Participant(name string) *Participant { return d.participants[name] }

// Signal sends a participant a signal.
func (p *Participant) Signal(sig syscall.Signal) error {
	if err := p.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal to %s: %w", p.Name, err)
	}
	return nil
}

// Await blocks until cond holds for the facts so far. When that takes longer than Expiry it
// returns an error that says what was awaited.
func (d *Demo) Await(ctx context.Context, what string, cond func([]Fact) bool) error {
	return d.History.Await(ctx, d.Expiry(), what, cond)
}

// AwaitEnd blocks until a participant's process has ended.
func (d *Demo) AwaitEnd(ctx context.Context, p *Participant) error {
	return d.Await(ctx, p.Name+" has ended", func([]Fact) bool { return p.Gone() })
}

// Cut separates a member from all others, and tells if that one led etcd. It blocks until that
// took effect, for no longer than Expiry.
func (d *Demo) Cut(ctx context.Context, m *etcdtest.Member) error {
	if d.Leads(ctx, m.Index, Election) {
		d.Aside("%s happens to lead etcd itself; the other members must first elect another, and leases begin anew", m.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, d.Expiry())
	defer cancel()
	return d.Field.Cut(ctx, etcdtest.BothWays, m.Index)
}

// Delete deletes a candidate's key, as an operator may. It blocks until the key is gone, for
// no longer than Expiry.
func (d *Demo) Delete(ctx context.Context, key string, token eldest.Token) error {
	ctx, cancel := context.WithTimeout(ctx, d.Expiry())
	defer cancel()
	return d.Field.Delete(ctx, key, int64(token))
}

// End has participants leave, one after the other, and tells what is left of an election when
// the last has ended. leaving is what is told before each.
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
