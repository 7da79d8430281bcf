package sim

import (
	"context"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// token returns the token of the tenure that the participant is sure of, or 0.
func (p *participant) token() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tenure == nil || p.unsure {
		return 0
	}
	return p.tenure.Token()
}

// state reports whether the process has started, whether it runs, and with which lease it is a candidate.
func (p *participant) state() (started, lives bool, lease int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started, p.started && p.life.Err() == nil, p.lease
}

// dead reports whether the participant crashed.
func (p *participant) dead() bool { return p.run.log.Dead(p.name) }

// sessionsLost counts how often it was notified that its session was lost.
func (p *participant) sessionsLost() int {
	n := 0
	for _, e := range p.run.log.Events() {
		if e.Who == p.name && e.Lost {
			n++
		}
	}
	return n
}

// ask samples, when another participant wins, whether this one is sure to lead.
func (p *participant) ask(by string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.askLocked(by)
	}
}

// askLocked is ask for a caller that holds mu; by is empty at the first use after a stop.
func (p *participant) askLocked(by string) {
	if p.tenure == nil || p.unsure && by != "" {
		return
	}
	kind := oracle.Sure
	if !p.tenure.Holds() {
		kind, p.unsure = oracle.NotSure, true
	}
	now := p.run.world.Now()
	p.report(oracle.Event{Kind: kind, Token: p.tenure.Token(), By: by, At: now, Until: now})
}

// resign makes the participant resign, and reports whether it led.
func (p *participant) resign() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tenure == nil || p.giveUp == nil {
		return false
	}
	close(p.giveUp)
	p.giveUp = nil
	return true
}

// quitWaiting withdraws a waiting candidate, every other time by ending the
// campaign's context, and reports whether there was one.
func (p *participant) quitWaiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	cancel, c := p.withdraw, p.candidate
	if cancel == nil || c == nil {
		return false
	}
	p.withdraw = nil
	p.report(oracle.Event{Kind: oracle.Leaving})
	called, ok := c.(interface{ Withdraw(context.Context) error })
	if p.byCall = !p.byCall; !p.byCall || !ok {
		cancel()
		return true
	}
	p.aside.Go(func() {
		ctx, end := context.WithTimeout(context.WithoutCancel(p.life), p.run.ttl)
		defer end()
		_ = called.Withdraw(ctx)
	})
	return true
}

// patience is how long a process may take to leave. Every part of a departure
// is bounded by contexts that end long before.
const patience = 2 * time.Minute

// depart begins an orderly end of the process.
func (p *participant) depart() {
	if _, lives, _ := p.state(); lives {
		p.report(oracle.Event{Kind: oracle.Leaving})
		p.kill()
	}
}

// leave ends the process in an orderly way and waits for it. If it does not end in time, its client
// is closed, as an operator would do.
func (p *participant) leave() {
	if started, _, _ := p.state(); !started {
		return
	}
	p.depart()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.report(oracle.Event{Kind: oracle.Stuck})
		p.host.Kill()
		<-p.done
	}
	p.aside.Wait()
}

// crash ends the process at this instant: the log gets no more of its events, and the server no
// more bytes. With reset, the kernel of the host resets its connections; without, the machine lost
// its power.
func (p *participant) crash(reset bool) {
	p.report(oracle.Event{Kind: oracle.Crashed})
	p.host.Unplug()
	if reset {
		p.host.Reset()
	}
	p.mu.Lock()
	started, s := p.started, p.session
	p.session, p.candidate, p.lease = nil, nil, 0
	if p.stopped != nil { // SIGKILL does not wait for SIGCONT
		close(p.stopped)
		p.stopped = nil
	}
	p.mu.Unlock()
	if !started {
		p.host.Kill()
		return
	}
	p.kill()
	if s != nil {
		s.Abandon()
		p.serving.Wait()
	}
	p.host.Kill()
	<-p.done
	p.aside.Wait()
}

// stop stops the process, as SIGSTOP does, at this instant, and returns a channel that is closed
// when it continues: its network is frozen, its clock is stopped, and it is not sampled. first is
// false if it was stopped already, has not started, or is dead.
//
// Its goroutines are not stopped, which is impossible in a bubble. But what they do by the clock
// happens at the instant of the stop, and what they send leaves when the process continues.
func (p *participant) stop() (goesOn <-chan struct{}, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil || p.waking || !p.started || p.dead() {
		return p.stopped, false
	}
	p.stopped = make(chan struct{})
	p.clock.stop()
	p.host.Freeze()
	p.report(oracle.Event{Kind: oracle.Stopped})
	return p.stopped, true
}

// goOn lets the process continue: its clock jumps, and everything that arrived meanwhile is
// available at once. If asked, it first checks whether it leads; otherwise it first processes what
// has arrived, and checks a moment later. It reports whether the process was stopped.
func (p *participant) goOn(asked bool) bool {
	p.mu.Lock()
	stopped := p.stopped
	p.stopped = nil
	if stopped == nil {
		p.mu.Unlock()
		return false
	}
	p.waking = !asked // what it sent while it was stopped may trigger another trap
	p.report(oracle.Event{Kind: oracle.Continued})
	p.clock.jump()
	if asked {
		p.askLocked("")
	}
	p.host.Thaw()
	close(stopped)
	look := p.look
	p.mu.Unlock()
	if !asked {
		time.Sleep(time.Microsecond)
		p.mu.Lock()
		p.waking = false
		if p.stopped == nil {
			p.askLocked("")
		}
		p.mu.Unlock()
	}
	if look != nil {
		look() // timers that would have fired during the stop fire now
	}
	return true
}

// halted returns a channel that is closed when the process continues; nil if it runs.
func (p *participant) halted() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// outside is a store that is independent of etcd and refuses tokens older than the newest it has
// seen: it protects external data from a leader that was stopped and continues.
type outside struct {
	mu     sync.Mutex
	newest int64
}

// offer writes with a participant's token, as soon as its process runs. It does not check whether the
// participant leads: the store must refuse. The answers are in the log, in the order of the writes.
func (o *outside) offer(p *participant, token int64) {
	for goesOn := p.halted(); goesOn != nil; goesOn = p.halted() {
		<-goesOn
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	e := oracle.Event{Who: p.name, Kind: oracle.FenceAccepted, Token: token}
	if token < o.newest {
		e.Kind = oracle.FenceRefused
	}
	if p.run.log.Add(e) { // dead processes write nothing
		o.newest = max(o.newest, token)
	}
}
