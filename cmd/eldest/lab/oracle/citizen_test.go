package oracle

import (
	"fmt"
	"time"
)

// citizen is a participant of a universe: one process, until it ends.
type citizen struct {
	u        *universe
	who      string
	life     int
	name     string
	dead     bool
	stopped  bool
	since    int // how often it was stopped, so that an old timer does not end a new stop
	waiting  []func()
	lease    int64
	deadline time.Duration // until when it is sure of its lease
	token    int64         // of its key, if it is known
	standing Kind          // "", Joined or Won
	told     bool          // it has reported its win
	campaign int           // counts campaigns: pending work of an old one is ignored
	writes   int
}

func (u *universe) birth(name string, life int) {
	p := &citizen{u: u, who: fmt.Sprintf("%s.%d", name, life), name: name, life: life}
	for i, old := range u.all {
		if old.name == name {
			u.all[i] = p
			p.acts(u.upTo(time.Second), p.enroll)
			return
		}
	}
	u.all = append(u.all, p)
	p.acts(u.upTo(time.Second), p.enroll)
}

// acts calls do after d, as soon as the process runs.
func (p *citizen) acts(d time.Duration, do func()) {
	p.u.later(d, func() {
		switch {
		case p.dead:
		case p.stopped:
			p.waiting = append(p.waiting, do)
		default:
			do()
		}
	})
}

// asks sends a request; back handles the answer.
func (p *citizen) asks(request func(), back func()) {
	there, lost := p.u.lag()
	again, forgotten := p.u.lag()
	if lost {
		return
	}
	p.u.later(there, func() {
		request()
		if !forgotten {
			p.acts(again, back)
		}
	})
}

func (p *citizen) stop(d time.Duration) {
	if p.dead || p.stopped {
		return
	}
	p.stopped = true
	p.since++
	n := p.since
	p.u.tell(Event{Who: p.who, Kind: Stopped})
	p.u.later(d, func() {
		if n == p.since {
			p.goOn()
		}
	})
}

func (p *citizen) goOn() {
	if p.dead || !p.stopped {
		return
	}
	p.u.tell(Event{Who: p.who, Kind: Continued})
	p.stopped = false
	late := p.waiting
	p.waiting = nil
	for _, do := range late {
		p.acts(p.u.upTo(tick), do)
	}
}

func (p *citizen) kill() {
	if p.dead {
		return
	}
	p.dead = true
	p.u.tell(Event{Who: p.who, Kind: Crashed, Code: -1})
	e := Event{Who: p.who, Kind: Exited, Code: -1}
	if p.u.defect == "says good-bye" {
		e.Code = 0
	}
	p.u.later(tick, func() { p.u.tell(e) })
	p.u.later(p.u.upTo(2*time.Second), func() { p.u.birth(p.name, p.life+1) })
}

// holds reports what the process can infer: its lease cannot have ended, and it was not notified
// that its key was deleted.
func (p *citizen) holds(token int64) bool {
	sure := p.standing != "" && p.token == token
	if p.u.defect == "sure for good" {
		return sure
	}
	return sure && p.u.now < p.deadline
}

// enroll opens a session and begins a campaign.
func (p *citizen) enroll() {
	p.u.n++
	p.lease = int64(p.u.n)
	p.deadline = p.u.now + lifetime
	p.u.renew(p.lease)
	p.keep(p.lease)
	p.stand()
}

func (p *citizen) keep(lease int64) {
	if p.lease != lease || p.u.now >= p.deadline {
		return
	}
	asked, ok := p.u.now, false
	p.asks(func() {
		if _, ok = p.u.expiry[lease]; ok {
			p.u.renew(lease)
		}
	}, func() {
		if ok && p.lease == lease && p.u.now < p.deadline {
			p.deadline = max(p.deadline, asked+lifetime)
		}
	})
	p.acts(lifetime/4, func() { p.keep(lease) })
}

func (p *citizen) stand() {
	p.campaign++
	p.standing, p.token = Joined, 0
	p.u.tell(Event{Who: p.who, Kind: Joined, Lease: p.lease})
	p.await(p.campaign)
}

// await registers, and requests whether its key is the oldest, until it is.
func (p *citizen) await(campaign int) {
	switch {
	case p.campaign != campaign || p.standing != Joined:
		return
	case p.u.now >= p.deadline:
		p.over(Event{Kind: Failed, Lost: true})
		return
	}
	var token int64
	oldest, proof := false, int64(0)
	lease := p.lease
	p.asks(func() {
		token = p.u.grow(p, lease)
		oldest, proof = len(p.u.queue) > 0 && p.u.queue[0].token == token, p.u.rev
		if p.u.defect == "does not look" {
			oldest = len(p.u.queue) < 3
		}
	}, func() {
		if p.campaign != campaign || p.standing != Joined || token == 0 {
			return
		}
		p.token = token
		if oldest && p.holds(token) {
			p.win(proof)
		}
	})
	p.acts(30*tick+p.u.upTo(30*tick), func() { p.await(campaign) })
}

func (p *citizen) win(proof int64) {
	p.standing, p.told = Won, false
	p.u.tell(Event{Who: p.who, Kind: Proven, Token: p.token, Proof: proof})
	// It may be stopped before it reports.
	token, campaign := p.token, p.campaign
	if !p.u.calm && p.u.chance(5) {
		p.stop(p.u.upTo(4 * time.Second))
	}
	p.acts(p.u.upTo(tick), func() {
		p.told = true
		p.u.tell(Event{Who: p.who, Kind: Won, Token: token, Key: key(p.lease)})
		p.sample(token, 3)
		p.work(token, campaign)
		p.lead(token, campaign)
	})
}

func (p *citizen) lead(token int64, campaign int) {
	if p.campaign != campaign || p.standing != Won {
		return
	}
	if !p.holds(token) || p.u.defect == "sure for good" && p.u.chance(1) {
		p.over(Event{Kind: Ended, Token: token, Lost: true})
		return
	}
	p.acts(5*tick, func() { p.lead(token, campaign) })
}

// over ends a campaign or a tenure, and begins the next after a while.
func (p *citizen) over(e Event) {
	e.Who = p.who
	p.standing = ""
	p.u.tell(e)
	p.acts(p.u.upTo(200*tick), func() {
		if e.Lost || p.u.now >= p.deadline {
			p.enroll()
		} else {
			p.stand()
		}
	})
}

// hears is called when the process is notified that its key was removed.
func (p *citizen) hears(c *candidacy) {
	_, lives := p.u.expiry[c.lease]
	switch {
	case p.lease != c.lease || p.token != c.token:
	case p.standing == Won && !p.told:
		p.acts(tick, func() { p.hears(c) })
	case p.standing == Won:
		p.over(Event{Kind: Ended, Token: p.token, Lost: !lives})
	case p.standing == Joined:
		p.over(Event{Kind: Failed, Lost: !lives})
	}
}

// quit resigns.
func (p *citizen) quit() {
	if p.dead || p.stopped || p.standing != Won || !p.told {
		return
	}
	token := p.token
	p.u.tell(Event{Who: p.who, Kind: Resigning, Token: token})
	p.over(Event{Kind: Ended, Token: token, Lost: true})
	p.lease = 0
	p.asks(func() { p.u.drop(token) }, func() {})
}
