package sim

import (
	"context"
	"errors"
	"time"

	"github.com/eldest-io/eldest/oracle"
)

// leads reports whether the participant holds a tenure and is sure of it.
func (a *actor) leads() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tenure != nil && a.tenure.Holds()
}

// state reports whether the process has begun, and whether it goes on.
func (a *actor) state() (started, lives bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.started, a.started && a.life.Err() == nil
}

// sessionsLost counts how often it was told that its session was lost.
func (a *actor) sessionsLost() int {
	n := 0
	for _, e := range a.stage.log.Events() {
		if e.Who == a.name && e.Lost {
			n++
		}
	}
	return n
}

// lease is the lease the participant stands with, or 0.
func (a *actor) lease() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.contender == nil {
		return 0
	}
	return a.contender.Lease()
}

// resign makes a leader give up and reports whether there was one to do so.
func (a *actor) resign() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tenure == nil || a.giveUp == nil {
		return false
	}
	close(a.giveUp)
	a.giveUp = nil
	return true
}

// quitWaiting withdraws a waiting candidate, every other time by ending the
// campaign's context, and reports whether there was one.
func (a *actor) quitWaiting() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	cancel, c := a.withdraw, a.contender
	if cancel == nil || c == nil {
		return false
	}
	a.withdraw = nil
	a.tell(oracle.Event{Kind: oracle.Leaving})
	if a.byCall = !a.byCall; !a.byCall {
		cancel()
		return true
	}
	a.aside.Go(func() {
		ctx, end := context.WithTimeout(context.WithoutCancel(a.life), a.stage.ttl)
		defer end()
		if errors.Is(c.Withdraw(ctx), errors.ErrUnsupported) {
			cancel()
		}
	})
	return true
}

// patience is how long a process may take to leave. Every part of a departure
// is bounded by contexts that end long before.
const patience = 2 * time.Minute

// leave ends the process politely and waits for it. One that does not come to
// its end loses its client, which is what an operator would do with it.
func (a *actor) leave() {
	a.mu.Lock()
	started, kill, done := a.started, a.kill, a.done
	a.mu.Unlock()
	if !started {
		return
	}
	a.tell(oracle.Event{Kind: oracle.Leaving})
	kill()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		a.tell(oracle.Event{Kind: oracle.Stuck})
		a.host.Kill()
		<-done
	}
	a.aside.Wait()
}

// crash ends the process at this instant: the log hears nothing more of it and
// the server no byte. With reset, the kernel of the host says so to the server;
// without, the machine lost its power.
func (a *actor) crash(reset bool) {
	a.tell(oracle.Event{Kind: oracle.Crashed})
	a.host.Unplug()
	if reset {
		a.host.Reset()
	}
	a.mu.Lock()
	started, kill, done, c := a.started, a.kill, a.done, a.contender
	a.contender = nil
	if a.stopped != nil { // SIGKILL does not wait for SIGCONT
		close(a.stopped)
		a.stopped = nil
	}
	a.mu.Unlock()
	if started {
		kill()
		if c != nil {
			c.Abandon()
		}
	}
	a.host.Kill()
	if started {
		<-done
		a.aside.Wait()
	}
}

// dead reports whether the participant crashed.
func (a *actor) dead() bool { return a.stage.log.Dead(a.name) }
