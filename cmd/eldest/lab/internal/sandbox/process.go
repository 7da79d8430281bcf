package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// refusal says what to do with a participant whose life does not fit. The caller holds the mutex.
func (c *candidate) refusal() error {
	switch c.state.Life {
	case feed.Left:
		return feed.Refused("%s has left: add another participant", c.name)
	case feed.Dead:
		return feed.Refused("%s is dead: restart it first", c.name)
	case feed.Stopped:
		return feed.Refused("%s is stopped: continue it first", c.name)
	case feed.Starting:
		return feed.Refused("%s is starting: try again in a moment", c.name)
	default:
		return feed.Refused("%s is running", c.name)
	}
}

// running returns the process of a participant that runs.
func (c *candidate) running() (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Life != feed.Running {
		return nil, c.refusal()
	}
	return c.proc, nil
}

// claim makes a dead participant one that starts, and changes its state.
func (c *candidate) claim(change func(*feed.ParticipantState)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state.Life {
	case feed.Dead:
	case feed.Running:
		return feed.Refused("%s is running: kill it first", c.name)
	default:
		return c.refusal()
	}
	change(&c.state)
	c.state.Life, c.proc = feed.Starting, nil
	c.shown()
	return nil
}

// start starts the next process of a participant whose life is feed.Starting, and blocks until it is
// up.
func (c *candidate) start(ctx context.Context) error {
	p, err := c.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	select {
	case <-p.Up:
		return nil
	case <-p.gone:
		_, complaint := p.Result()
		return fmt.Errorf("%s ended at its start: %s; restart it", c.name, cmp.Or(complaint, "it was killed"))
	case <-ctx.Done():
		return fmt.Errorf("%s is not up yet: %w", c.name, context.Cause(ctx))
	}
}

// quit has a process leave the election and end. If it does not end before ctx does, it is killed.
func (c *candidate) quit(ctx context.Context, p *process) error {
	_ = p.Order(participant.Order{Do: participant.DoQuit}) // an error means that it has ended
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		p.End()
		return fmt.Errorf("%s did not leave in time, and was killed: %w", c.name, context.Cause(ctx))
	}
}

// end kills a participant's process, if it has one, and makes it one that has left.
func (c *candidate) end() {
	c.mu.Lock()
	p := c.proc
	if p != nil {
		p.then = feed.Left
	}
	c.mu.Unlock()
	if p != nil {
		p.End()
	}
	c.left()
}

// left makes a participant one that has left.
func (c *candidate) left() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Life != feed.Left {
		c.state.Life = feed.Left
		c.shown()
	}
}

func (t *task) add(ctx context.Context) error {
	name, err := t.in.nextName()
	if err != nil {
		return err
	}
	c, err := newCandidate(t.in, name, t.a.Kind, t.a.Rule)
	if err != nil {
		return err
	}
	t.in.mu.Lock()
	t.in.candidates[name] = c
	t.in.mu.Unlock()
	return c.start(ctx)
}

func (t *task) restart(ctx context.Context) error {
	if err := t.c.claim(func(*feed.ParticipantState) {}); err != nil {
		return err
	}
	return t.c.start(ctx)
}

// setRule has a participant that runs leave first, so that no key of it is left.
func (t *task) setRule(ctx context.Context) error {
	c := t.c
	c.mu.Lock()
	kind, life, p := c.state.Kind, c.state.Life, c.proc
	var err error
	switch {
	case !appliesTo(t.a.Rule, kind):
		err = feed.Refused("%s is of the kind %s, from which the rule %q cannot be taken out", c.name, kind, t.a.Rule)
	case life == feed.Running:
		p.then = feed.Dead
	case life != feed.Dead:
		err = c.refusal()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if life == feed.Running {
		// It may take all of the time that there is to leave: then it is killed, and the next one
		// starts all the same.
		most, cancel := context.WithTimeout(ctx, quitTime)
		_ = c.quit(most, p)
		cancel()
	}
	if err := c.claim(func(s *feed.ParticipantState) { s.Rule = t.a.Rule }); err != nil {
		return err
	}
	return c.start(ctx)
}

// quitTime is how long a participant may take to leave before it is killed and restarted.
const quitTime = 8 * time.Second

func (t *task) leave(ctx context.Context) error {
	c := t.c
	c.mu.Lock()
	life, p := c.state.Life, c.proc
	var err error
	switch life {
	case feed.Running:
		p.then = feed.Left
	case feed.Dead:
	default:
		err = c.refusal()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if life == feed.Running {
		err = c.quit(ctx, p)
		if err == nil && p.failed() {
			return fmt.Errorf("%s ended before it had left: restart it, or let it leave again", c.name)
		}
	}
	c.left()
	c.disconnect()
	return err
}

// failed reports whether a process that has ended did not do so in good order.
func (p *process) failed() bool {
	code, _ := p.Result()
	return code != 0
}

func (t *task) kill(context.Context) error {
	c := t.c
	c.mu.Lock()
	p := c.proc
	var err error
	switch {
	case c.state.Life == feed.Dead || c.state.Life == feed.Left || p == nil:
		err = c.refusal()
	default:
		p.then = feed.Dead
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	p.End() // it blocks until exited has returned
	return nil
}

func (t *task) resign(ctx context.Context) error {
	c := t.c
	p, err := c.running()
	if err != nil {
		return err
	}
	ended := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ended
	}
	before := ended()
	if err := p.Order(participant.Order{Do: participant.DoResign}); err != nil {
		return err
	}
	err = inject.Until(ctx, c.name+" has resigned", func(context.Context) (bool, error) { return p.isGone() || ended() > before, nil })
	if err == nil && ended() == before {
		return fmt.Errorf("%s ended meanwhile: restart it", c.name)
	}
	return err
}

// isGone reports whether a process has ended, and the participant's state says so.
func (p *process) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// stop is seen by the kernel.
func (t *task) stop(context.Context) error {
	c := t.c
	p, err := c.running()
	if err != nil {
		return err
	}
	if err := p.Suspend(); err != nil {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == p && c.state.Life == feed.Running {
		c.state.Life = feed.Stopped
		c.shown()
	}
	return nil
}

// resume is seen by the kernel. The state is shown before the process can report anything.
func (t *task) resume(ctx context.Context) error {
	c := t.c
	c.mu.Lock()
	p := c.proc
	var err error
	switch c.state.Life {
	case feed.Stopped:
		c.state.Life = feed.Running
		c.shown()
		err = p.Resume()
	case feed.Running:
		err = feed.Refused("%s is not stopped", c.name)
	default:
		err = c.refusal()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return inject.Until(ctx, c.name+" continues", func(context.Context) (bool, error) {
		stopped, err := etcdtest.Stopped(p.Pid())
		return err != nil || !stopped, nil //nolint:nilerr // an error: it has ended meanwhile
	})
}
