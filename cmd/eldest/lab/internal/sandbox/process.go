package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// runs reports whether the process with which it had so many lives exists. The caller holds mu.
func (c *candidate) runs(lives int) bool {
	return c.state.Lives == lives && slices.Contains(notDead, c.state.Life)
}

// start starts the next process of a participant that has none, without a rule, and blocks until it is up.
func (c *candidate) start(ctx context.Context, rule string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := permit(c.name, c.state.Life, dead); err != nil {
		return err
	}
	c.state.Rule = rule
	// What is called for the process needs mu, and so comes after this.
	process, err := participant.Launch(c.in.field.Spawner, c.in.cfg.Executable, c.config(), c.read, c.exited)
	if err != nil {
		c.show()
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	c.process, c.expected, c.leaves = process, false, false
	c.state.Life, c.state.Pid = feed.Starting, process.Pid()
	c.state.Lives++
	lives := c.state.Lives
	c.show()
	isUp := func() bool { return c.state.Life != feed.Starting || c.state.Lives != lives }
	if err := c.await(ctx, isUp); err != nil {
		return fmt.Errorf("%s is not up yet: %w", c.name, err)
	}
	if process.Gone() {
		_, complaint := process.Result()
		return fmt.Errorf("%s ended at its start: %s; restart it", c.name, cmp.Or(complaint, "it was killed"))
	}
	return nil
}

// quit has a process that runs leave the election and end. If it does not end before ctx does, it is
// killed.
func (c *candidate) quit(ctx context.Context, leaves bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := permit(c.name, c.state.Life, running); err != nil {
		return err
	}
	process, lives := c.process, c.state.Lives
	c.expected, c.leaves = true, leaves
	_ = process.Order(participant.Order{Do: participant.DoQuit}) // an error means that it has ended
	err := c.await(ctx, func() bool { return !c.runs(lives) })
	if err == nil {
		return nil
	}
	c.mu.Unlock() // exited needs it
	process.End()
	c.mu.Lock()
	return fmt.Errorf("%s did not leave in time, and was killed: %w", c.name, err)
}

// kill kills its process, if it has one, and blocks until all that it has written was read.
func (c *candidate) kill() {
	c.mu.Lock()
	process := c.process
	c.expected = true
	c.mu.Unlock()
	if process != nil {
		process.End()
	}
}

// end makes a participant one that has left: it kills its process, and all keepers, and ends its
// network. It may be called again.
func (c *candidate) end() {
	c.kill()
	c.mu.Lock()
	keepers := c.keepers
	c.keepers = nil
	if c.state.Life != feed.Left {
		c.state.Life = feed.Left
		c.show()
	}
	c.mu.Unlock()
	for _, keeper := range keepers {
		// Its parent has ended: it is waited for elsewhere.
		for keeper.Kill() == nil && alive(keeper.Pid) {
			time.Sleep(5 * time.Millisecond)
		}
		_ = keeper.Release() // a handle of a process that may have ended
	}
	c.disconnect()
}

func (t *task) add() error {
	c, err := t.in.addCandidate(t.era, t.Kind)
	if err != nil {
		return err
	}
	return c.start(t.ctx, t.Rule)
}

func (t *task) restart() error {
	t.c.mu.Lock()
	rule := t.c.state.Rule
	t.c.mu.Unlock()
	return t.c.start(t.ctx, rule)
}

// quitTime is how long a participant may take to leave before it is killed and restarted.
const quitTime = 8 * time.Second

// setRule has a participant that runs leave first, so that no key of it is left.
func (t *task) setRule() error {
	// The kind never changes.
	if err := checkRule(t.Rule, t.c.state.Kind); err != nil {
		return err
	}
	if t.c.life() == feed.Running {
		// It may take all of the time that there is to leave: then it is killed, and the next one
		// starts all the same.
		most, cancel := context.WithTimeout(t.ctx, quitTime)
		_ = t.c.quit(most, false)
		cancel()
	}
	return t.c.start(t.ctx, t.Rule)
}

func (t *task) leave() (err error) {
	c := t.c
	if c.life() == feed.Running {
		err = c.quit(t.ctx, true)
		switch {
		case errors.Is(err, feed.ErrRefused):
			return err
		case err == nil && c.life() == feed.Dead:
			return fmt.Errorf("%s ended before it had left: restart it, or let it leave again", c.name)
		}
	}
	c.end()
	return err
}

func (t *task) kill() error {
	t.c.kill()
	return nil
}

func (t *task) resign() error {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	before, lives := c.ended, c.state.Lives
	if err := c.process.Order(participant.Order{Do: participant.DoResign}); err != nil {
		return err
	}
	err := c.await(t.ctx, func() bool { return c.ended > before || !c.runs(lives) })
	if err == nil && c.ended == before {
		return fmt.Errorf("%s ended meanwhile: restart it", c.name)
	}
	return err
}

// stop is seen by the kernel.
func (t *task) stop() error {
	c := t.c
	c.mu.Lock()
	process := c.process
	c.mu.Unlock()
	if err := process.Suspend(); err != nil {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == process && c.state.Life == feed.Running {
		c.state.Life = feed.Stopped
		c.show()
	}
	return nil
}

// resume is seen by the kernel. The state is shown before the process can report anything.
func (t *task) resume() error {
	c := t.c
	c.mu.Lock()
	process := c.process
	err := permit(c.name, c.state.Life, stopped)
	if err == nil {
		c.state.Life = feed.Running
		c.show()
		err = process.Resume()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return inject.Until(t.ctx, c.name+" continues", func(context.Context) (bool, error) {
		stopped, err := etcdtest.Stopped(process.Pid())
		return err != nil || !stopped, nil //nolint:nilerr // an error: it has ended meanwhile
	})
}
