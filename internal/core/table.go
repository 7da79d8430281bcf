package core

import (
	"errors"

	"github.com/eldest-io/eldest"
)

// Step returns the state after an event and the effects to carry out. It does not change
// its argument.
func Step(c Candidate, e Event) (Candidate, Effects) {
	next := c
	Table[c.Phase][e.Kind].Do(&next, e)
	return next, between(&c, &next)
}

// Rule is what happens at an event in a phase.
type Rule struct {
	// Text describes the rule, for the documentation.
	Text string
	// Do changes the state. It must not keep or change anything else.
	Do func(c *Candidate, e Event)
}

// Table has the rule for each phase and each event. Events that a phase does not list here have the
// rules of otherwise.
var Table = complete([phases][kinds]Rule{
	Idle: {
		Campaign:    {"registers", enter},
		Leave:       {"deletes the key that the user names, if any", appeared},
		Keep:        {"watches the key", func(c *Candidate, e Event) { c.Token, c.Position.Revision = e.Token, e.Revision; c.keep() }},
		KeyAppeared: {"deletes it", appeared},
	},
	Entering: {
		Campaign:   {"continues", func(c *Candidate, e Event) { c.Want = e.Want }},
		Leave:      {"notes that no key is wanted; if it pauses, looks for one now", abandonEntry},
		Registered: {"holds the key, unless it was given up before: then deletes it and registers again", registered},
		Refused:    {"ends; an earlier attempt may have been carried out: looks for the key", refusedEntry},
		Undone:     pause,
		Unanswered: {"notes that the registration may be carried out late, and pauses", func(c *Candidate, _ Event) { c.Owed, c.Unsure, c.Paused = true, true, true }},
		Due:        {"registers again, which finds an existing key; or, if no key is wanted any more, looks for one", again},
	},
	Waiting: {
		Campaign:     {"continues; if no older candidate existed it leads or, with heartbeats, asks again", func(c *Candidate, e Event) { c.Want = e.Want; c.queued(c.Position) }},
		Leave:        withdraw,
		Requeue:      requeue,
		ElderDeleted: {"asks for the older candidates at that revision: the deletion is no proof, another older one may exist", look},
		KeyDeleted:   depose,
		KeyUnsafe:    withdraw,
	},
	Proving: {
		Campaign:   {"continues", func(c *Candidate, e Event) { c.Want = e.Want }},
		Leave:      withdraw,
		Requeue:    requeue,
		Looked:     {"leads if the key exists and no elder does; waits for the next elder; or was deposed", looked},
		Surveyed:   {"leads, or requeues if the user says so; or was deposed", surveyed},
		Refused:    withdraw,
		Undone:     pause,
		Unanswered: pause,
		Due:        {"asks again, at the newest revision", func(c *Candidate, _ Event) { c.ask(Ask{Request: c.Asked.Request, Token: c.Token}) }},
		KeyDeleted: depose,
		KeyUnsafe:  withdraw,
	},
	Leading: {
		Campaign:   leads,
		Leave:      {"ends the leading context, then deletes the key", func(c *Candidate, e Event) { giveUp(c, e); c.remove() }},
		Requeue:    leads,
		Drain:      {"ends the leading context and keeps the key", func(c *Candidate, e Event) { c.Phase, c.Cause = Draining, e.Err; c.doom() }},
		KeyDeleted: depose,
		KeyUnsafe:  withdraw,
		Suspend:    {"ends the leading context and keeps the key, to prove the win again when a campaign asks for it", func(c *Candidate, e Event) { c.Phase, c.Cause = Draining, e.Err }},
	},
	Draining: {
		Campaign:   {"asks for the older candidates if the key was kept; else deletes the key, and then registers", campaignAgain},
		Leave:      withdraw,
		Drain:      {"gives up the kept key; it does not lead with that key again", func(c *Candidate, _ Event) { c.doom() }},
		KeyDeleted: depose,
		KeyUnsafe:  withdraw,
	},
	Leaving: {
		Campaign:   {"registers once the key is deleted; asks at once if it pauses", func(c *Candidate, e Event) { c.Want, c.Paused = e.Want, false }},
		Leave:      {"does not register again; asks at once if it pauses", func(c *Candidate, e Event) { giveUp(c, e); c.Paused = false }},
		Keep:       {"stops its requests and watches the key, if the key is known and no other is wanted", kept},
		Looked:     {"deletes the key if there is one", func(c *Candidate, e Event) { c.Token, c.Unsure, c.Position = e.Token, false, e.Position; c.remove() }},
		Deleted:    {"registers if that is wanted", func(c *Candidate, e Event) { c.Token, c.Position.Revision = 0, e.Revision; c.remove() }},
		Refused:    {"does not register again; pauses and repeats the deletion, because the key would block the queue", refusedRemoval},
		Undone:     pause,
		Unanswered: pause,
		Due:        {"asks again", func(c *Candidate, _ Event) { c.Paused = false }},
	},
	Lost: {
		Campaign: over, Leave: over, Keep: over, Requeue: over, Drain: over, Registered: over, Looked: over, Surveyed: over, Deleted: over, Refused: over,
		Undone: over, Unanswered: over, Due: over, ElderDeleted: over, KeyDeleted: over, KeyUnsafe: over, KeyAppeared: over, Suspend: over, SessionEnded: over,
	},
})

// otherwise has the rules of the events in phases that do not list them. Each phase lists Campaign and
// Leave.
var otherwise = [kinds]Rule{
	Keep: nothingToDo, Requeue: notRegistered, Drain: notLeading,
	Registered: notAsked, Looked: notAsked, Surveyed: notAsked, Deleted: notAsked, Refused: notAsked, Undone: notAsked, Unanswered: notAsked, Due: notAsked,
	ElderDeleted: notWatched, KeyDeleted: notWatched, KeyUnsafe: notWatched, KeyAppeared: notWatched,
	Suspend: notLed, SessionEnded: lose,
}

// complete adds the rules of otherwise to a table.
func complete(table [phases][kinds]Rule) [phases][kinds]Rule {
	for phase := range table {
		for kind := range table[phase] {
			if table[phase][kind].Do == nil {
				table[phase][kind] = otherwise[kind]
			}
		}
	}
	return table
}

// Rules that change nothing, with the reason.
var (
	nothingToDo   = Rule{"nothing to do", same}
	notRegistered = Rule{"refused: not registered", same}
	notLeading    = Rule{"refused: not leading", same}
	notLed        = Rule{"nothing to do: it does not lead", same}
	leads         = Rule{"refused: leading", same}
	notAsked      = Rule{"cannot happen: no such request is under way", same}
	notWatched    = Rule{"late, ignored: not watched any more", same}
	over          = Rule{"ignored: the session has ended", same}
)

func same(*Candidate, Event) {}

// Rules of several phases.
var (
	lose = Rule{"ends; the key is deleted with the lease, unless the lease is resumed", func(c *Candidate, e Event) {
		c.Owed = c.Owed || c.Phase == Entering && !c.Paused
		c.end(Lost, e.Err)
	}}
	withdraw = Rule{"deletes the key", func(c *Candidate, e Event) { giveUp(c, e); c.remove() }}
	requeue  = Rule{"deletes the key, and then registers", func(c *Candidate, _ Event) { c.Cause = eldest.ErrRequeued; c.remove() }}
	depose   = Rule{"ends: deposed", func(c *Candidate, e Event) {
		c.Position.Revision = max(e.Revision, e.Position.Revision)
		c.doom()
		c.end(Idle, eldest.ErrDeposed)
	}}
	pause = Rule{"pauses", func(c *Candidate, _ Event) { c.Paused = true }}
)

// ask makes a request the one to send now.
func (c *Candidate) ask(a Ask) { c.Asked, c.Paused = a, false }

// end ends the candidacy. The key is deleted, or is deleted with the lease.
func (c *Candidate) end(at Phase, cause error) {
	c.Phase, c.Want, c.Cause, c.Token, c.Position = at, Nothing, cause, 0, Position{Revision: c.Position.Revision}
	c.ask(Ask{})
}

// giveUp notes that no key is wanted any more, and why.
func giveUp(c *Candidate, e Event) { c.Want, c.Cause = Nothing, e.Err }

// doom notes that the key's life is over, before its deletion is sent. The candidate never
// holds it again (G2): a deletion that is under way may be carried out at any time.
func (c *Candidate) doom() { c.Doomed = max(c.Doomed, c.Token) }

// enter starts a registration.
func enter(c *Candidate, e Event) {
	c.Phase, c.Want, c.Token, c.Position = Entering, e.Want, 0, Position{}
	request := Register
	if c.Want == LeadNow {
		request = RegisterAlone
	}
	c.ask(Ask{Request: request})
}

// remove starts the deletion of the key, and continues with what is wanted once there is none.
func (c *Candidate) remove() {
	switch {
	case c.Token > 0:
		c.doom()
		c.Phase, c.Position = Leaving, Position{Revision: c.Position.Revision}
		c.ask(Ask{Request: Delete, Token: c.Token})
	case c.Want != Nothing:
		enter(c, Event{Want: c.Want})
	default:
		c.end(Idle, c.Cause)
	}
}

// find looks for a key that a registration may have left.
func (c *Candidate) find() {
	c.Phase, c.Token = Leaving, 0
	c.ask(Ask{Request: Look})
}

// appeared deletes a key that the candidate did not know.
func appeared(c *Candidate, e Event) {
	if e.Token == 0 {
		return
	}
	if c.Token = e.Token; e.Err != nil {
		c.Cause = e.Err
	}
	c.remove()
}

// keep watches the key and sends nothing. If the deletion of the key is under way, the token is
// doomed, and the deletion can end no other life.
func (c *Candidate) keep() {
	c.Phase, c.Want = Draining, Lead
	c.ask(Ask{})
}

func kept(c *Candidate, _ Event) {
	if c.Token > 0 && c.Want == Nothing {
		c.keep()
	}
}

func campaignAgain(c *Candidate, e Event) {
	if c.Want = e.Want; c.Token > c.Doomed {
		c.Phase = Proving
		c.ask(Ask{Request: Look, Token: c.Token})
		return
	}
	c.Cause = eldest.ErrResigned
	c.remove()
}

func registered(c *Candidate, e Event) {
	c.Token, c.Unsure = e.Token, false
	switch {
	case c.Want == Nothing, c.Token <= c.Doomed:
		c.remove()
	default:
		c.queued(e.Position)
	}
}

func abandonEntry(c *Candidate, e Event) {
	giveUp(c, e)
	if c.Paused {
		c.giveUpEntry()
	}
}

// giveUpEntry ends a registration that is not wanted any more, and that may have created a key.
func (c *Candidate) giveUpEntry() {
	if c.Unsure {
		c.find()
	} else {
		c.end(Idle, c.Cause)
	}
}

func refusedRemoval(c *Candidate, e Event) {
	if c.Want != Nothing {
		giveUp(c, e)
	}
	c.Paused = true
}

func refusedEntry(c *Candidate, e Event) {
	if errors.Is(e.Err, eldest.ErrOutcomeUnknown) {
		c.Owed, c.Unsure = true, true
	}
	if c.Want != Nothing {
		giveUp(c, e)
	}
	c.giveUpEntry()
}

func again(c *Candidate, _ Event) {
	if c.Want == Nothing {
		c.giveUpEntry()
	} else {
		enter(c, Event{Want: c.Want})
	}
}

func look(c *Candidate, e Event) {
	c.Phase = Proving
	c.Position.Elders = c.Position.Elders[min(1, len(c.Position.Elders)):]
	c.ask(Ask{Request: Look, Token: c.Token, At: e.Revision})
}

func looked(c *Candidate, e Event) {
	if e.Token != c.Token {
		depose.Do(c, e)
		return
	}
	c.queued(e.Position)
}

func surveyed(c *Candidate, e Event) {
	switch {
	case e.Token != c.Token:
		depose.Do(c, e)
	case e.Yield:
		requeue.Do(c, e)
	default:
		c.lead(e.Position)
	}
}

// lead is the win: at that position the key existed, and no older one did (G1).
func (c *Candidate) lead(p Position) {
	c.Phase, c.Position = Leading, p
	c.ask(Ask{})
}

// queued moves the candidate to the phase that follows from its position in the queue.
func (c *Candidate) queued(p Position) {
	repeated := c.Phase == Proving
	proven := p.Complete && (repeated || !c.Beats)
	c.Position = p
	c.ask(Ask{})
	switch {
	case len(p.Elders) > 0 && c.Want == LeadNow:
		c.Want, c.Cause = Nothing, eldest.ErrNotElected
		c.remove()
	case len(p.Elders) > 0, c.Want == Queue:
		c.Phase = Waiting
	case proven && c.Yields && c.Want == Lead:
		c.Phase = Proving
		c.ask(Ask{Request: Survey, Token: c.Token})
	case proven:
		c.lead(p)
	default: // the older candidates are not known, or not known well enough
		c.Phase = Proving
		c.ask(Ask{Request: Look, Token: c.Token})
		c.Paused = repeated
	}
}
