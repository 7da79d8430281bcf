package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Participant is one process that takes part. One that ended and comes back is another one.
type Participant struct {
	*offspring.Process
	Name string
	// Member is through which it reaches etcd: through no other, so that a member's
	// partition is its participants' as well.
	Member *etcdtest.Member
}

// Start starts "eldest" with the given words, a name, and the flags that all participants
// have, tells what it reports, in order, and blocks until a fact of its says that it is
// ready. It returns that fact, or why there is none.
func (e *Env[F]) Start(ctx context.Context, name string, member int, ready func(F) bool, words ...string) (p *Participant, said F, err error) {
	begin := time.Now()
	if p, err = e.launch(name, member, words); err != nil {
		return nil, said, err
	}
	found := false
	err = e.Await(ctx, name+" is ready", func(facts []F) bool {
		if f := Last(facts, func(f F) bool { return f.When().After(begin) && ready(f) }); f != nil {
			said, found = *f, true
		}
		return found || p.Gone()
	})
	if err == nil && !found {
		_, complaint := p.Result()
		err = fmt.Errorf("%s ended before it was ready: %s", name, complaint)
	}
	return p, said, err
}

func (e *Env[F]) launch(name string, member int, words []string) (*Participant, error) {
	p := &Participant{Name: name, Member: e.Member(member)}
	cmd := exec.Command(e.Executable, slices.Concat(words, []string{
		name, "--json", "--ttl", e.TTL.String(), "--endpoints", p.Member.Endpoint,
	})...)
	var err error
	p.Process, err = e.Spawner.Launch(cmd,
		func(line []byte) {
			var f F
			if json.Unmarshal(line, &f) == nil { // a killed process may leave half a line
				e.Tell(f.By(p))
			}
		},
		func(process *offspring.Process) {
			code, complaint := process.Result()
			var f F
			e.Tell(f.Exited(p, code, complaint))
		})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	e.participants = append(e.participants, p)
	return p, nil
}

// Participant is the newest of that name.
func (e *Env[F]) Participant(name string) *Participant {
	for _, p := range slices.Backward(e.participants) {
		if p.Name == name {
			return p
		}
	}
	panic("no participant has this name: " + name)
}

// Signal sends a participant a signal.
func (p *Participant) Signal(sig syscall.Signal) error {
	if err := p.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal to %s: %w", p.Name, err)
	}
	return nil
}

// AwaitEnd blocks until a participant's process has ended.
func (e *Env[F]) AwaitEnd(ctx context.Context, p *Participant) error {
	return e.Await(ctx, p.Name+" has ended", func([]F) bool { return p.Gone() })
}
