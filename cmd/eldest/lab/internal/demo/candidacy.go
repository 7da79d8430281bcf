package demo

import (
	"slices"
	"time"

	"github.com/eldest-io/eldest"
)

// candidacy is the life of one key, put together from the facts.
type candidacy struct {
	actor, key string
	token      eldest.Token
	entered    time.Time
	// won is when it won; zero: never.
	won time.Time
	// ended is the instant from which it counts as gone (see the package
	// comment); zero: never. told is when the candidate itself reported the end.
	ended, told time.Time
	// act is what the demo did to end it; "" if it ended by itself.
	act Act
	// cause is the reason that the candidate gave.
	cause string
}

// goneBy reports whether the candidacy was over at t.
func (c *candidacy) goneBy(t time.Time) bool { return !c.ended.IsZero() && !c.ended.After(t) }

// candidacies returns all, in the order of their tokens. facts are in order.
func candidacies(facts []Fact) []*candidacy {
	byKey := make(map[string]*candidacy)
	var all []*candidacy
	for _, f := range facts {
		if f.Kind != Registered {
			continue
		}
		c := &candidacy{actor: f.Actor, key: f.Key, token: f.Token, entered: f.At}
		all, byKey[f.Key] = append(all, c), c
	}
	// A second pass, because a report of a registration may carry a later time
	// than what followed from it.
	for _, f := range facts {
		c := byKey[f.Key]
		if c == nil {
			continue
		}
		switch f.Kind {
		case Won:
			if c.won.IsZero() {
				c.won = f.At
			}
		case Lost, Resigned:
			c.told, c.cause = f.At, f.Cause
			if c.ended.IsZero() {
				c.ended = f.At
			}
		case Acted:
			c.acted(f)
		}
	}
	slices.SortStableFunc(all, func(a, b *candidacy) int { return int(a.token - b.token) })
	return all
}

// acted takes an act on the candidacy into account.
func (c *candidacy) acted(f Fact) {
	switch {
	case !c.ended.IsZero() || f.Act == Mend:
	case f.Act == Kill || f.Act == Silence || f.Act == Delete:
		c.act, c.ended = f.Act, f.At
	default:
		c.act = f.Act
	}
}

// tenures returns the candidacies that won, in the order of their wins.
func tenures(all []*candidacy) []*candidacy {
	var led []*candidacy
	for _, c := range all {
		if !c.won.IsZero() {
			led = append(led, c)
		}
	}
	slices.SortStableFunc(led, func(a, b *candidacy) int { return a.won.Compare(b.won) })
	return led
}

// Handover is the change from one leader to the next.
type Handover struct {
	// Act is what caused it; "" if the demo did nothing to cause it.
	Act      Act          `json:"act,omitempty"`
	From     string       `json:"from"`
	To       string       `json:"to"`
	OldToken eldest.Token `json:"old_token"`
	NewToken eldest.Token `json:"new_token"`
	// Took is the time from the act (without one: from the end of the old tenure)
	// to the successor's win.
	Took time.Duration `json:"-"`
	// Neither is the part of it in which nobody led.
	Neither time.Duration `json:"-"`
	// Told is how long after the act the old leader knew; 0: it never did.
	Told time.Duration `json:"-"`

	wonAt time.Time
}

// handovers returns the changes of leader, in order. facts are in order.
func handovers(facts []Fact) []Handover {
	led := tenures(candidacies(facts))
	var changes []Handover
	for i := 1; i < len(led); i++ {
		old, next := led[i-1], led[i]
		h := Handover{
			Act: old.act, From: old.actor, To: next.actor, OldToken: old.token, NewToken: next.token, wonAt: next.won,
		}
		begin := old.ended
		for _, f := range facts {
			if f.Kind == Acted && f.Act == old.act && f.Key == old.key {
				begin = f.At
				break
			}
		}
		if !begin.IsZero() {
			h.Took = next.won.Sub(begin)
		}
		if !old.ended.IsZero() {
			h.Neither = next.won.Sub(old.ended)
		}
		if !old.told.IsZero() && !begin.IsZero() {
			h.Told = old.told.Sub(begin)
		}
		changes = append(changes, h)
	}
	return changes
}
