package oracle

import (
	"fmt"
	"time"
)

// sample checks whether the citizen is sure to lead, between two readings of the clock between
// which anything may happen, until it was not sure a few times.
func (p *citizen) sample(token int64, after int) {
	e := Event{Who: p.who, Kind: Sure, At: p.u.now, Token: token}
	p.acts(p.u.upTo(tick), func() {
		if p.u.chance(1) && !p.u.calm {
			p.stop(p.u.upTo(4 * time.Second))
		}
		if !p.holds(token) {
			e.Kind = NotSure
			after--
		}
		p.acts(p.u.upTo(tick), func() {
			e.Until = p.u.now
			p.u.tell(e)
			if after > 0 {
				p.acts(40*tick, func() { p.sample(token, after) })
			}
		})
	})
}

// work writes and reads until the tenure is over, and once more.
func (p *citizen) work(token int64, campaign int) {
	over := p.campaign != campaign || p.standing != Won
	p.write(token)
	p.fence(token)
	p.look(0)
	if p.u.chance(30) {
		p.look(token)
	}
	if !over {
		p.acts(50*tick+p.u.upTo(50*tick), func() { p.work(token, campaign) })
	}
}

func (p *citizen) write(token int64) {
	p.writes++
	name := fmt.Sprintf("%s-%d", p.who, p.writes)
	told, done := false, false
	answer := func(kind Kind) {
		if !told {
			told = true
			p.u.tell(Event{Who: p.who, Kind: kind, Token: token, Write: name})
		}
	}
	p.u.tell(Event{Who: p.who, Kind: Sent, Token: token, Write: name})
	p.asks(func() {
		switch {
		case p.u.defect == "loses writes" && p.u.chance(2):
			done = true
		case p.u.lives(token) || p.u.defect == "no guard":
			p.u.commit(token, name)
			done = true
		}
	}, func() {
		if done {
			answer(Acked)
		} else {
			answer(Refused)
		}
	})
	p.acts(700*tick, func() {
		if p.u.defect == "calls it refused" {
			answer(Refused)
		}
		answer(Unclear)
	})
}

func (p *citizen) fence(token int64) {
	p.asks(func() {
		e := Event{Who: p.who, Kind: FenceRefused, Token: token}
		if token >= p.u.newest || p.u.defect == "no fence" {
			e.Kind = FenceAccepted
			p.u.newest = max(p.u.newest, token)
		}
		p.u.tell(e)
	}, func() {})
}

// look reads, guarded by a token or not.
func (p *citizen) look(token int64) {
	e := Event{Who: p.who, Kind: Read, At: p.u.now, Token: token}
	ok := false
	p.asks(func() {
		ok = token == 0 || p.u.lives(token)
		e.Write = p.u.value
		if p.u.defect == "stale reads" && p.u.chance(2) {
			e.Write = p.u.before
		}
	}, func() {
		if ok {
			e.Until = p.u.now
			p.u.tell(e)
		}
	})
}
