package sim

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
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
	if a.session == nil {
		return 0
	}
	return int64(a.session.Lease())
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
	cancel, c := a.withdraw, a.candidate
	if cancel == nil || c == nil {
		return false
	}
	a.withdraw = nil
	a.tell(oracle.Event{Kind: oracle.Leaving})
	called, ok := c.(interface{ Withdraw(context.Context) error })
	if a.byCall = !a.byCall; !a.byCall || !ok {
		cancel()
		return true
	}
	a.aside.Go(func() {
		ctx, end := context.WithTimeout(context.WithoutCancel(a.life), a.stage.ttl)
		defer end()
		_ = called.Withdraw(ctx)
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
	started, kill, done, s := a.started, a.kill, a.done, a.session
	a.session, a.candidate = nil, nil
	if a.stopped != nil { // SIGKILL does not wait for SIGCONT
		close(a.stopped)
		a.stopped = nil
	}
	a.mu.Unlock()
	if started {
		kill()
		if s != nil {
			s.Abandon()
			a.serving.Wait()
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
