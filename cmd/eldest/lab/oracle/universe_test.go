package oracle

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// universe is a small simulated election, in which the truth is known: a store with leases and a
// guard, participants that are stopped, killed and partitioned, and a network with delays. It
// writes the history that processes would write. Its election is correct, unless it is given a
// defect; so whatever the checkers find without a defect is a false alarm, and a defect that they
// do not find is a gap in them.
type universe struct {
	History
	rng    *rand.Rand
	defect string
	now    time.Duration
	agenda agenda
	n      int  // numbers entries of the agenda, and leases
	calm   bool // the faults are over

	rev    int64
	expiry map[int64]time.Duration // by lease
	queue  []*candidacy
	value  string
	before string // the value before this one
	newest int64  // token in the fenced store
	seen   int64  // revision, by the observer
	all    []*citizen
}

func key(lease int64) string { return fmt.Sprintf("e/%x", lease) }

// candidacy is a key in the store.
type candidacy struct {
	lease, token int64
	owner        *citizen
}

type appointment struct {
	at time.Duration
	n  int
	do func()
}

type agenda []appointment

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].n < a[j].n
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(appointment)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

const (
	faulty   = 15 * time.Second
	lifetime = 2000 * tick
)

// happen runs a universe from its beginning to its end.
func happen(seed uint64, defect string) *History {
	u := &universe{
		History: History{About: About{Prefix: "e/", Data: "data", TTL: lifetime}},
		rng:     rand.New(rand.NewPCG(seed, 7)), defect: defect, rev: 1, expiry: map[int64]time.Duration{}, now: tick,
	}
	for i := range 4 {
		u.birth(fmt.Sprintf("p%d", i+1), 1)
	}
	u.later(time.Second, u.strike)
	u.later(tick, u.watch)
	u.later(faulty, u.heal)
	u.later(faulty+u.recovery()+time.Second, u.list)
	end := faulty + u.recovery() + 2*time.Second
	u.later(end, func() { u.tell(Event{Kind: Fault, Text: "the end"}) })
	for len(u.agenda) > 0 && u.now <= end+tick {
		next := heap.Pop(&u.agenda).(appointment)
		u.now = max(u.now, next.at)
		next.do()
	}
	slices.SortStableFunc(u.Events, func(a, b Event) int { return int(a.At - b.At) })
	for i := range u.Events {
		u.Events[i].Seq = i + 1
	}
	return &u.History
}

func (u *universe) later(d time.Duration, do func()) {
	u.n++
	heap.Push(&u.agenda, appointment{u.now + d, u.n, do})
}

func (u *universe) tell(e Event) {
	if e.At == 0 {
		e.At = u.now
	}
	u.Events = append(u.Events, e)
}

func (u *universe) upTo(most time.Duration) time.Duration {
	return time.Duration(u.rng.Int64N(int64(most)))
}

func (u *universe) chance(percent int) bool { return u.rng.IntN(100) < percent }

// lag draws the delay of a message; lost means that it does not arrive.
func (u *universe) lag() (d time.Duration, lost bool) {
	switch {
	case u.calm || u.chance(90):
		return u.upTo(3 * tick), false
	case u.chance(60):
		return u.upTo(3 * time.Second), false
	default:
		return 0, true
	}
}

// grow puts a key with a lease into the store.
func (u *universe) grow(p *citizen, lease int64) int64 {
	if _, ok := u.expiry[lease]; !ok {
		return 0
	}
	for _, c := range u.queue {
		if c.lease == lease {
			return c.token
		}
	}
	u.rev++
	u.queue = append(u.queue, &candidacy{lease, u.rev, p})
	u.Changes = append(u.Changes, Change{Rev: u.rev, At: u.now, Key: key(lease), Create: u.rev})
	return u.rev
}

func (u *universe) drop(token int64) {
	i := slices.IndexFunc(u.queue, func(c *candidacy) bool { return c.token == token })
	if i < 0 {
		return
	}
	u.rev++
	u.Changes = append(u.Changes, Change{Rev: u.rev, At: u.now, Key: key(u.queue[i].lease), Create: token, Deleted: true})
	u.queue = slices.Delete(u.queue, i, i+1)
}

func (u *universe) lives(token int64) bool {
	return slices.ContainsFunc(u.queue, func(c *candidacy) bool { return c.token == token })
}

// renew extends a lease by another TTL, and ends it when that is over.
func (u *universe) renew(lease int64) {
	u.expiry[lease] = u.now + lifetime
	u.later(lifetime, func() {
		if at, ok := u.expiry[lease]; ok && at <= u.now {
			u.revoke(lease)
		}
	})
}

func (u *universe) revoke(lease int64) {
	delete(u.expiry, lease)
	for _, c := range slices.Clone(u.queue) {
		if c.lease == lease && u.defect != "ghost" {
			u.drop(c.token)
		}
	}
}

func (u *universe) commit(token int64, name string) {
	u.rev++
	u.before, u.value = u.value, name
	u.Changes = append(u.Changes, Change{Rev: u.rev, At: u.now, Key: "data", Create: 1, Value: WriteValue(token, name)})
}

// strike injects a random fault, again and again.
func (u *universe) strike() {
	if u.calm {
		return
	}
	u.tell(Event{Kind: Struck, Text: "something"})
	p := u.all[u.rng.IntN(len(u.all))]
	switch u.rng.IntN(5) {
	case 0, 1:
		p.stop(u.upTo(4 * time.Second))
	case 2:
		p.kill()
	case 3:
		u.takeAway()
	case 4:
		p.quit()
	}
	u.later(u.upTo(time.Second), u.strike)
}

// takeAway removes a key by hand, or its lease. The owner is notified after a while.
func (u *universe) takeAway() {
	if len(u.queue) == 0 {
		return
	}
	c := u.queue[u.rng.IntN(len(u.queue))]
	if u.chance(50) {
		u.tell(Event{Who: "admin", Kind: Removed, Token: c.token, Key: key(c.lease)})
		u.later(u.upTo(300*tick), func() { u.drop(c.token) })
	} else {
		u.tell(Event{Who: "admin", Kind: Removed, Lease: c.lease})
		u.later(u.upTo(300*tick), func() { u.revoke(c.lease) })
	}
	c.owner.acts(300*tick+u.upTo(2*time.Second), func() { c.owner.hears(c) })
}

// watch is an observer, whose notifications may be late, and are dropped if there are newer ones.
func (u *universe) watch() {
	e := Event{Who: "observer", Kind: Observed, Text: Nobody, Commit: u.rev}
	if len(u.queue) > 0 {
		c := u.queue[0]
		e.Text, e.Token, e.Key, e.Lease = Led, c.token, key(c.lease), c.lease
	}
	back, lost := u.lag()
	u.later(back, func() {
		switch {
		case lost:
			u.tell(Event{Who: "observer", Kind: Observed, Text: Unknown, Reason: "no answer"})
		case e.Commit >= u.seen || u.defect == "goes back":
			u.tell(e)
			u.seen = max(u.seen, e.Commit)
		}
	})
	u.later(50*tick, u.watch)
}

func (u *universe) heal() {
	u.calm = true
	for _, p := range u.all {
		p.goOn()
	}
	u.tell(Event{Kind: Healed})
}

func (u *universe) list() {
	e := Event{Kind: Queue, At: u.now, Until: u.now + tick, Keys: []string{}}
	for _, c := range u.queue {
		e.Keys = append(e.Keys, key(c.lease))
	}
	u.tell(e)
}
