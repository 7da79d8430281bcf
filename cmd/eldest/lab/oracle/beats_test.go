package oracle

import (
	"testing"
	"time"
)

// Heartbeats: a tenure leads in spells, and its key may be deleted by the one behind it.

// beating is a campaign with heartbeats whose timeout is half a second.
func (s *story) beating(who string, lease int64) *story {
	return s.at(Event{Who: who, Kind: Joined, Lease: lease, Beat: 500 * time.Millisecond})
}

// twice is a tenure that was suspended and leads on, with another candidate behind it.
func twice() *story {
	return tell().beating("a", 0xa).put(0xa).is("a", Won, 2).is("a", Proven, 2).beating("b", 0xb).put(0xb).
		is("a", Suspended, 2).is("a", Resumed, 2)
}

// ousted is a tenure that was suspended, and whose key the next one has deleted.
func ousted() *story {
	s := tell().beating("a", 0xa).put(0xa).is("a", Won, 2).beating("b", 0xb).put(0xb)
	s.at(Event{Kind: Trouble, Until: time.Minute}).is("a", Suspended, 2).del(0xa, 2)
	return s.at(Event{Who: "b", Kind: Evicted, Token: 2, Key: key(0xa)}).is("b", Won, 3)
}

// late is an eviction of one that leads on, and hears of it later.
func late() *story {
	return tell().beating("a", 0xa).put(0xa).is("a", Won, 2).beating("b", 0xb).put(0xb).del(0xa, 2).
		at(Event{Who: "b", Kind: Evicted, Token: 2, Key: key(0xa)}).is("b", Won, 3).is("a", Suspended, 2)
}

func TestI1OfSpells(t *testing.T) {
	try(t, I1, []tried{
		{"leads on after another's win", ousted().is("a", Resumed, 2).is("b", Suspended, 3).is("b", Resumed, 3), 2}, // and so does that one
		{"another wins in the second spell", twice().is("b", Won, 3), 1},
		{"goes on past its eviction", late(), 1},
		{"sure at the instant at which another leads on", ousted().is("b", Suspended, 3).is("c", Won, 4).at(Event{Who: "c", Kind: Held, Token: 4, By: "b"}).same(Event{Who: "c", Kind: Ended, Token: 4}).same(Event{Who: "b", Kind: Resumed, Token: 3}), 1},
		{"sure in the second spell at another's win", twice().at(Event{Who: "a", Kind: Held, Token: 2, By: "b"}).same(Event{Who: "a", Kind: Suspended, Token: 2}).same(Event{Who: "b", Kind: Won, Token: 3}), 1},

		{"leads on", twice(), 0},
		{"is evicted while it is suspended", ousted(), 0},
		{"is evicted and told of it", ousted().is("a", Ended, 2), 0},
		{"let go in the second spell", twice().is("a", LetGo, 2).is("b", Won, 3), 0},
		{"taken by hand in the second spell", twice().is("admin", Removed, 2).is("b", Won, 3), 0},
	})
}

func TestOrderOfSpells(t *testing.T) {
	try(t, I6, []tried{
		{"leads on unasked", tell().beating("a", 0xa).put(0xa).is("a", Won, 2).is("a", Resumed, 2), 1},
		{"leads on by another's token", twice().is("a", Suspended, 2).is("b", Resumed, 2), 1},
		{"leads on by another token", twice().is("a", Suspended, 2).is("a", Resumed, 3), 1},
		{"leads on after the end", twice().is("a", Suspended, 2).is("a", Ended, 2).is("a", Resumed, 2), 1},
		{"suspended twice", twice().is("a", Suspended, 2).is("a", Suspended, 2), 1},
		{"waits, and is suspended", tell().beating("a", 0xa).put(0xa).is("a", Suspended, 2), 1},
		{"goes on past its eviction", late(), 1},
		{"is evicted in its second spell", twice().del(0xa, 2), 1},
		{"two lead functions", twice().is("a", Serving, 2).is("a", Serving, 2), 1},
		{"leads on while the lead function runs", tell().beating("a", 0xa).put(0xa).is("a", Won, 2).is("a", Serving, 2).is("a", Suspended, 2).is("a", Resumed, 2), 1},
		{"a lead function that never began", twice().is("a", Served, 2), 1},
		{"taken by hand while it is suspended, and never told", twice().is("a", Suspended, 2).at(Event{Who: "admin", Kind: Removed, Token: 2, Clear: true}).del(0xa, 2), 1},

		{"leads on and ends", twice().is("a", Ended, 2), 0},
		{"suspended and ends", twice().is("a", Suspended, 2).is("a", Ended, 2), 0},
		{"is evicted while it is suspended", ousted(), 0},
		{"looked first", tell().beating("a", 0xa).put(0xa).is("a", Won, 2).is("a", LetGo, 2).is("a", Suspended, 2).del(0xa, 2), 0},
		{"one lead function after the other", twice().is("a", Serving, 2).is("a", Served, 2).is("a", Suspended, 2).is("a", Resumed, 2).is("a", Serving, 2), 0},
	})
}

func TestTokensOfSpells(t *testing.T) {
	try(t, Tokens, []tried{
		{"an older one leads on", ousted().is("a", Resumed, 2), 1},
		{"an older one leads on, stopped before it was suspended", tell().beating("a", 0xa).is("a", Won, 2).is("a", Stopped, 0).is("a", Continued, 0).is("a", Suspended, 2).is("b", Won, 3).is("a", Resumed, 2), 1},
		{"another wins with a token that led on", twice().is("a", Suspended, 2).is("b", Won, 2), 1},

		{"leads on, and again", twice().is("a", Suspended, 2).is("a", Resumed, 2).is("b", Won, 3), 0},
		{"told late, it was stopped", twice().is("a", Suspended, 2).is("a", Stopped, 0).is("b", Won, 3).is("a", Continued, 0).is("a", Resumed, 2), 0},
	})
}

func TestI4OfSpells(t *testing.T) {
	try(t, I4, []tried{
		{"leads on without a key", late().is("a", Resumed, 2), 1},
		{"leads on by a proof of before", late().is("a", Proven, 2).is("a", Resumed, 2), 1},
		{"leads on by a wrong proof", ousted().is("a", Resumed, 2).at(Event{Who: "a", Kind: Proven, Token: 2, Proof: 4}), 2}, // of its win, too: either may be meant

		{"leads on", twice(), 0},
		{"two proofs", twice().at(Event{Who: "a", Kind: Proven, Token: 2, Proof: 3}), 0},
	})
}

func TestI5OfSpells(t *testing.T) {
	quiet := Event{Kind: Quiet}
	try(t, I5, []tried{
		{"suspended for ever", twice().is("a", Suspended, 2).at(quiet), 1},
		{"suspended without a key", ousted().at(quiet), 1},
		{"leads on", twice().at(quiet), 0},
	})
}

func TestI7OfHeartbeats(t *testing.T) {
	well := func() *story { return tell().beating("a", 0xa).put(0xa).is("a", Won, 2).beating("b", 0xb).put(0xb) }
	ill := func() *story { return well().at(Event{Who: "a", Kind: Trouble, Until: time.Minute}) }
	evicted := Event{Who: "b", Kind: Evicted, Token: 2, Key: key(0xa)}
	try(t, I7, []tried{
		{"suspended for nothing", well().is("a", Suspended, 2), 1},
		{"evicted for nothing", well().at(evicted), 1},
		{"evicted for the trouble of another", well().at(Event{Who: "b", Kind: Trouble, Until: time.Minute}).at(evicted), 1},
		{"gives up while it is suspended", ill().is("a", Suspended, 2).is("a", Ended, 2), 1},

		{"suspended in trouble", ill().is("a", Suspended, 2), 0},
		{"evicted in trouble", ill().is("a", Suspended, 2).del(0xa, 2).at(evicted).is("b", Won, 3).is("a", Ended, 2), 0},
		{"evicted when it was dead", well().is("a", Crashed, 0).del(0xa, 2).at(evicted).is("b", Won, 3), 0},
	})
}

// alive is a campaign with heartbeats, and when its win was told.
func alive(joined, at int, who string, token int64) []Event {
	e := won(joined, at, who, token)
	e[0].Beat = ms(500)
	return e
}

func TestLeadingInSpells(t *testing.T) {
	a, b := alive(1, 10, "a", 2), alive(1, 500, "b", 3)
	suspended := says(100, "a", Suspended, 2)
	again := says(200, "a", Resumed, 2)
	judged(t, Leading, map[string]trial{
		"sure while it is suspended":           {timeline(a, suspended, asks(101, 102, "a", Sure, 2)), 1},
		"sure again, and had led on once":      {timeline(a, suspended, again, asks(210, 211, "a", NotSure, 2), asks(220, 221, "a", Sure, 2)), 1},
		"sure after its second suspension":     {timeline(a, suspended, again, says(300, "a", Suspended, 2), asks(301, 302, "a", Sure, 2)), 1},
		"leads on after another's win":         {timeline(a, b, says(600, "a", Suspended, 2), says(700, "a", Resumed, 2)), 1},
		"leads on after its key was gone":      {gone(timeline(a, suspended, again), 50, 2), 1},
		"sure after its eviction":              {gone(timeline(a, suspended, again, asks(400, 401, "a", Sure, 2)), 300, 2), 1},
		"sure after a stop beyond the timeout": {timeline(a, paused(20, 700, "a"), asks(701, 702, "a", Sure, 2)), 1},
		"sure after it in its second spell":    {timeline(a, suspended, again, paused(300, 1000, "a"), asks(1001, 1002, "a", Sure, 2)), 1},

		"leads on":                          {timeline(a, suspended, again, asks(201, 202, "a", Sure, 2)), 0},
		"not sure before it led on":         {timeline(a, asks(99, 101, "a", NotSure, 2), suspended, again, asks(201, 202, "a", Sure, 2)), 0},
		"looked late at what was suspended": {timeline(a, suspended, asks(150, 205, "a", NotSure, 2), again, asks(210, 211, "a", Sure, 2)), 0},
		"its key goes while it asks":        {gone(timeline(a, suspended, again), 150, 2), 0},
		"not sure after the stop":           {timeline(a, paused(20, 700, "a"), asks(701, 702, "a", NotSure, 2)), 0},
		"led on after the stop":             {timeline(a, paused(20, 700, "a"), says(701, "a", Suspended, 2), says(710, "a", Resumed, 2), asks(711, 712, "a", Sure, 2)), 0},
		"a stop within the timeout":         {timeline(a, paused(20, 500, "a"), asks(501, 502, "a", Sure, 2)), 0},
		"a stop, and no heartbeats":         {timeline(won(1, 10, "a", 2), paused(20, 700, "a"), asks(701, 702, "a", Sure, 2)), 0},
	})
}

func TestHealingOfTheSuspended(t *testing.T) {
	a := alive(1, 10, "a", 2)
	list := func(at int) []Event {
		return []Event{{At: ms(at), Until: ms(at + 1), Kind: Queue, Keys: []string{key(2)}}}
	}
	over := says(90_000, "", Fault, 0)
	judged(t, Healing, map[string]trial{
		"suspended for good":         {timeline(a, says(20, "a", Suspended, 2), healed(100), over), 1},
		"suspended, and listed":      {timeline(a, says(20, "a", Suspended, 2), list(100), list(9000), list(20_000)), 2},
		"leads on in time":           {timeline(a, says(20, "a", Suspended, 2), healed(100), says(200, "a", Resumed, 2), over), 0},
		"led on before":              {timeline(a, says(20, "a", Suspended, 2), says(30, "a", Resumed, 2), healed(100), asks(200, 201, "a", Sure, 2), over), 0},
		"listed when it has led on":  {timeline(a, says(20, "a", Suspended, 2), says(30, "a", Resumed, 2), list(9000), list(20_000)), 0},
		"a sample of before it ends": {timeline(a, says(20, "a", Suspended, 2), healed(100), asks(200, 201, "a", Sure, 2), over), 1},
	})
}
