package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/clockctx"
)

// participant is a process on a host that campaigns, leads, writes while it leads, and then begins
// again, until it leaves or crashes.
type participant struct {
	run *run
	member
	name  string
	id    string // of a node; its next process has the same
	host  *rig.Host
	rng   *rand.Rand // of this participant alone
	clock *clock

	mu        sync.Mutex
	started   bool
	stopped   chan struct{} // non-nil while the process is stopped; closed when it continues
	waking    bool          // it continues, and has reported nothing yet
	session   contender.Session
	candidate contender.Candidate
	lease     int64                 // with which it is a candidate; 0: none
	takesOver bool                  // of a node: the key that its earlier process left is removed
	status    func() elector.Status // of a node
	look      func()                // makes its session, or its elector, read the clock; nil if it has none
	tenure    contender.Tenure
	serving   sync.WaitGroup     // takes part in transfers, until the session ends
	unsure    bool               // NotSure is in the log for this tenure
	withdraw  context.CancelFunc // ends the current campaign
	giveUp    chan struct{}      // closed: resign
	decided   bool               // the end of the tenure, or of this part of it, is decided: a resignation, or by itself
	byCall    bool               // the last withdrawal was by a call
	aside     sync.WaitGroup     // pending withdrawals
	writes    int                // sent so far; used only by the writer, of which there is one at a time
	life      context.Context
	kill      context.CancelFunc
	done      chan struct{}
}

// begin starts the participant's process.
func (p *participant) begin(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = true
	p.life, p.kill = context.WithCancel(ctx)
	p.done = make(chan struct{})
	if p.dead() { // before it began
		p.kill()
	}
	go func() {
		defer close(p.done)
		if _, ok := p.run.impl.(nodes); ok {
			p.elect()
		} else {
			p.campaigns()
		}
	}()
}

// campaigns runs the process: it opens session after session, and campaigns again and again in each.
func (p *participant) campaigns() {
	for p.life.Err() == nil {
		s, c, err := p.open()
		if err != nil {
			p.rest(200*time.Millisecond, time.Second)
			continue
		}
		p.set(func() {
			p.session, p.candidate, p.lease = s, c, int64(s.Lease())
			p.look = func() { s.Usable() }
		})
		for p.life.Err() == nil && s.Usable() {
			p.campaign(s, c)
			p.rest(0, p.run.tempo.rest)
		}
		p.part(s)
	}
}

func (p *participant) open() (contender.Session, contender.Candidate, error) {
	ctx, cancel := context.WithTimeout(p.life, p.run.ttl)
	defer cancel()
	s, err := p.contender().Open(clockctx.With(ctx, p.clock), p.host.Client, p.run.ttl)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Candidate(electionName, p.name)
	if err != nil {
		s.Abandon()
	}
	return s, c, err
}

// part closes a session in an orderly way, unless the process is dead: then crash has abandoned it.
func (p *participant) part(s contender.Session) {
	p.mu.Lock()
	mine := p.session == s
	p.session, p.candidate, p.lease, p.look = nil, nil, 0, nil
	p.mu.Unlock()
	if !mine {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.life), 2*p.run.ttl)
	defer cancel()
	_ = s.Close(ctx) // what is left then expires with the lease
	p.serving.Wait()
}

// campaign campaigns once, and leads if it wins.
func (p *participant) campaign(s contender.Session, c contender.Candidate) {
	ctx, cancel := context.WithCancel(p.life)
	defer cancel()
	p.set(func() { p.withdraw = cancel })
	p.joins(int64(s.Lease()))
	t, err := c.Campaign(ctx)
	if err != nil {
		denied := errors.Is(err, rpctypes.ErrNoSpace)
		p.report(oracle.Event{Kind: oracle.Failed, Lost: !s.Usable(), Denied: denied, Text: err.Error()})
		if p.rng.IntN(4) == 0 && s.Usable() && !p.run.calm.Load() {
			// Idle with a live session, until everything heals, so that leftovers can be seen.
			p.wait(p.run.ttl, p.run.ttl+20*time.Second, p.run.healed)
		}
		return
	}
	won := oracle.Event{Kind: oracle.Won, Token: t.Token(), Key: t.Key()}
	for p.lead(t, won, s.Usable) {
		token := t.Token()
		p.set(func() { p.withdraw = cancel })
		if t, err = c.(resumer).Resume(ctx); err != nil {
			p.set(func() { p.withdraw = nil })
			p.drains(token, err)
			p.report(oracle.Event{Kind: oracle.Ended, Token: token, Lost: !s.Usable(), Text: err.Error()})
			return
		}
		won.Kind, won.Token = oracle.Resumed, t.Token()
		if t.Token() != token { // its key had been deleted when it campaigned: this is another tenure
			p.report(oracle.Event{Kind: oracle.Ended, Token: token, Text: "its key was deleted while it was suspended"})
			p.joins(int64(s.Lease()))
			won.Kind = oracle.Won
		}
	}
}

// resumer is a candidate whose tenures can be suspended.
type resumer interface {
	Resume(ctx context.Context) (contender.Tenure, error)
}

func (p *participant) joins(lease int64) {
	e := oracle.Event{Kind: oracle.Joined, Lease: lease}
	if !p.run.mute {
		e.Beat = p.beats.Timeout
	}
	p.report(e)
}

// lead writes until the tenure ends, and reports its end at the instant of the notification, which
// may be long before a resignation returns. It reports whether the tenure is suspended, and may be
// resumed.
func (p *participant) lead(t contender.Tenure, won oracle.Event, usable func() bool) (suspended bool) {
	if p.run.spoil != nil {
		t = p.run.spoil(t, p.host.Client)
	}
	giveUp := make(chan struct{})
	p.set(func() { p.withdraw, p.tenure, p.unsure, p.giveUp, p.decided = nil, t, false, giveUp, false })
	// Now, at the instant of the win, sample which others are still sure. Their answers are before the win
	// in the log, because a participant that is not sure now was not sure when the win happened.
	for _, other := range p.run.allParticipants() {
		if other != p {
			other.ask(p.name)
		}
	}
	p.report(won)
	enough := p.enough()
	var work sync.WaitGroup
	work.Go(func() { p.serve(t) })
	work.Go(func() {
		select {
		case <-t.Context().Done():
			return
		case <-p.life.Done():
		case <-giveUp:
		case <-enough:
		}
		if p.decide() {
			p.report(oracle.Event{Kind: oracle.Resigning, Token: t.Token()})
			p.letGo(t)
		}
	})
	<-t.Context().Done()
	cause := context.Cause(t.Context())
	drains := p.drains(t.Token(), cause)
	over := oracle.Event{Kind: oracle.Ended, Token: t.Token(), Lost: !usable(), Text: cause.Error()}
	if suspended = errors.Is(cause, eldest.ErrSuspended) && p.decide(); suspended {
		over.Kind, over.Lost = oracle.Suspended, false
	}
	p.report(over)
	p.set(func() { p.tenure, p.giveUp = nil, nil })
	work.Wait()
	if drains {
		// Its work as leader takes a while to end, and no other participant may lead meanwhile.
		p.rest(0, 200*time.Millisecond)
		p.letGo(t)
	}
	return suspended
}

// drains reports whether the tenure, which leads or is suspended, was requested to end, and logs it.
func (p *participant) drains(token int64, cause error) bool {
	was := errors.Is(cause, eldest.ErrDraining)
	if was {
		p.report(oracle.Event{Kind: oracle.Resigning, Token: token})
	}
	return was
}

// decide reports whether the caller is the first to decide how the tenure ends.
func (p *participant) decide() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.decided
	p.decided = true
	return first
}

// letGo resigns; it repeats a resignation that fails, because the session may still be valid.
func (p *participant) letGo(t contender.Tenure) {
	for range 3 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.life), time.Second)
		err := t.Resign(ctx)
		cancel()
		if err == nil || p.dead() {
			return
		}
	}
}

// serve does the leader's work: in a lead function if it has heartbeats.
func (p *participant) serve(t contender.Tenure) {
	function, ok := t.(interface {
		Lead(ctx context.Context, f func(context.Context) error) error
	})
	if p.beats.Timeout == 0 || !ok {
		p.write(t)
		return
	}
	_ = function.Lead(p.run.world.T.Context(), func(context.Context) error {
		p.report(oracle.Event{Kind: oracle.Serving, Token: t.Token()})
		p.write(t)
		p.report(oracle.Event{Kind: oracle.Served, Token: t.Token()})
		return nil
	}) // the tenure has the reason for its end
}

// readEach is the number of its own writes after which a participant reads.
const readEach = 5

// write makes guarded writes until the tenure is over, and one more, which must be refused, like
// the queued write of a leader that was paused. Each is followed by one to the store outside etcd.
func (p *participant) write(t contender.Tenure) {
	pace := time.Duration(0) // at once: the first write matters most while others are still unsure
	for over := false; !over; pace = p.run.tempo.pace {
		if pace > 0 && p.run.calm.Load() {
			pace = max(pace, 3*time.Second) // only to save time
		}
		timer := time.NewTimer(pace)
		select {
		case <-t.Context().Done():
			over = true
		case <-timer.C:
		}
		timer.Stop()
		p.writeOnce(t)
		p.run.outside.offer(p, t.Token())
		if p.writes%readEach == 1 && !over { // first after the first write: what a new leader finds
			p.run.read(context.WithoutCancel(p.life), p.name, p.host.Client)
		}
	}
}

func (p *participant) writeOnce(t contender.Tenure) {
	p.writes++ // over all tenures: a faulty election may reuse a token
	name := fmt.Sprintf("%s-%d", p.name, p.writes)
	// Not p.life: a write in flight when the process ends stays unclear, and the host drops it when
	// the process is dead.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.life), time.Second)
	defer cancel()
	if !p.run.log.Add(oracle.Event{Who: p.name, Kind: oracle.Sent, Token: t.Token(), Write: name}) {
		return
	}
	resp, err := t.Do(ctx, clientv3.OpPut(dataKey, oracle.WriteValue(t.Token(), name)))
	e := oracle.Event{Kind: oracle.Acked, Token: t.Token(), Write: name}
	switch {
	case err == nil:
		e.Commit = resp.Header.Revision
	case errors.Is(err, contender.ErrRefused):
		e.Kind, e.Text = oracle.Refused, err.Error()
	default:
		e.Kind, e.Text = oracle.Unclear, err.Error()
	}
	p.report(e)
}

// enough delivers when a leader has led for as long as its tempo allows; it is nil without a limit.
func (p *participant) enough() <-chan time.Time {
	most := p.run.tempo.linger
	if most == 0 || p.run.calm.Load() {
		return nil
	}
	return time.After(time.Duration(p.rng.Int64N(int64(most))))
}

func (p *participant) report(e oracle.Event) {
	e.Who = p.name
	p.run.log.Add(e)
}

func (p *participant) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// rest waits for a moment between least and most, or the end of the process.
func (p *participant) rest(least, most time.Duration) { p.wait(least, most, nil) }

func (p *participant) wait(least, most time.Duration, healed <-chan struct{}) {
	timer := time.NewTimer(least + time.Duration(p.rng.Int64N(int64(most-least+1))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-healed:
	case <-p.life.Done():
	}
}
