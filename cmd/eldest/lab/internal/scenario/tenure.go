package scenario

import (
	"cmp"
	"slices"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Candidacy is the lifetime of one key, composed from the facts.
type Candidacy struct {
	Name, Key string
	Token     eldest.Token
	// Won is when it won; zero means never.
	Won time.Time
	// Ended is the instant from which it counts as ended; zero means never. A process that is killed
	// reports nothing, and the old leader and the new one are notified of a deletion in any order: such a
	// tenure ends with the action. Told is when the candidate itself reported the end.
	Ended, Told time.Time
	// Action is the demo's action that ended it, at Began; "" if it ended by itself.
	Action Action
	Began  time.Time
}

func (c *Candidacy) end(at time.Time) {
	if c.Ended.IsZero() {
		c.Ended = at
	}
}

// candidacies returns all candidacies, in the order of their tokens. facts are in order.
func candidacies(facts []Fact) []*Candidacy {
	byToken := make(map[eldest.Token]*Candidacy)
	// A first pass, because the report of a registration may have a later time than its consequences.
	for _, f := range facts {
		if f.Kind == Registered || f.leads() && byToken[f.Token] == nil {
			byToken[f.Token] = &Candidacy{Name: f.Participant, Key: f.Key, Token: f.Token}
		}
	}
	leads := make(map[string]*Candidacy) // by participant
	for _, f := range facts {
		c := byToken[f.Token]
		switch {
		case f.leads():
			leads[f.Participant] = c
			if c.Won.IsZero() {
				c.Won = f.At
			}
		case f.Kind == Status || f.Kind == Exited: // its token, if any, is that of another candidacy
			if c = leads[f.Participant]; c != nil {
				delete(leads, f.Participant)
				if c.end(f.At); f.Kind == Status {
					c.Told = f.At
				}
			}
		case c == nil:
		case f.Kind == Lost || f.Kind == Resigned:
			c.Told = f.At
			c.end(f.At)
		case f.Kind == Acted && c.Ended.IsZero() && (f.Action.Deposes() || f.Action == Withdraw || f.Action == Leave):
			c.Action, c.Began = f.Action, f.At
			if f.Action.crashes() || f.Action.removes() {
				c.end(f.At)
			}
		}
	}
	all := make([]*Candidacy, 0, len(byToken))
	for _, c := range byToken {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Candidacy) int { return int(a.Token - b.Token) })
	return all
}

// leads reports whether the fact reports that a participant leads.
func (f Fact) leads() bool { return f.Kind == Won || f.Kind == Status && f.Role == Leading }

// Candidates returns the queue, according to the reports, the oldest first.
func Candidates(facts []Fact) []*Candidacy {
	return slices.DeleteFunc(candidacies(InOrder(facts)), func(c *Candidacy) bool { return !c.Ended.IsZero() })
}

// Leader returns the leader, according to the reports, or nil.
func Leader(facts []Fact) *Candidacy {
	if queue := Candidates(facts); len(queue) > 0 && !queue[0].Won.IsZero() {
		return queue[0]
	}
	return nil
}

// Tenures returns the candidacies that won, in the order of their wins. facts are in order.
func Tenures(facts []Fact) []*Candidacy {
	led := slices.DeleteFunc(candidacies(facts), func(c *Candidacy) bool { return c.Won.IsZero() })
	slices.SortStableFunc(led, func(a, b *Candidacy) int { return a.Won.Compare(b.Won) })
	return led
}

// Handover is the change from one leader to the next.
type Handover struct {
	// Action is the cause; "" if no action of the demo was the cause.
	Action   Action       `json:"action,omitempty"`
	From     string       `json:"from"`
	To       string       `json:"to,omitempty"`
	OldToken eldest.Token `json:"old_token"`
	NewToken eldest.Token `json:"new_token,omitempty"`
	// TookMS is the time from the action (without one: from the end of the old tenure) to the
	// successor's win, NeitherMS the part of it without a leader; in milliseconds.
	TookMS    float64 `json:"took_ms"`
	NeitherMS float64 `json:"neither_ms"`

	Took, Neither time.Duration `json:"-"`
	// Told is how long after the action the old leader was notified; 0 means never.
	Told time.Duration `json:"-"`
}

// Handovers returns the changes of leader, in order. facts are in order.
func Handovers(facts []Fact) []Handover {
	led := Tenures(facts)
	var changes []Handover
	for i := 1; i < len(led); i++ {
		old, next := led[i-1], led[i]
		h := Handover{Action: old.Action, From: old.Name, To: next.Name, OldToken: old.Token, NewToken: next.Token}
		begin := old.Began
		if begin.IsZero() {
			begin = old.Ended
		}
		after := func(from, to time.Time) time.Duration {
			if from.IsZero() || to.IsZero() {
				return 0
			}
			return to.Sub(from)
		}
		h.Took, h.Neither, h.Told = after(begin, next.Won), after(old.Ended, next.Won), after(begin, old.Told)
		h.TookMS, h.NeitherMS = story.InMillis(h.Took), story.InMillis(h.Neither)
		changes = append(changes, h)
	}
	return changes
}

// The exit codes of "eldest campaign" that demos rely on, and -1 for a process that a signal ended.
const (
	CodeLost   = 3
	CodeKilled = -1
)

// same are the kinds of facts that the oracle has under another name, without a difference.
var same = map[Kind]oracle.Kind{Waiting: oracle.Moved, Suspended: oracle.Suspended, Resumed: oracle.Resumed, Settled: oracle.Settled}

// Record converts facts, which are in order, to the form that the oracle reads; more, if not nil,
// adds the plan's own events. Instants count from begin.
func (c Config) Record(begin time.Time, facts []Fact, more func(f Fact, tell func(oracle.Event))) *oracle.History {
	h := &oracle.History{About: oracle.About{Recovery: c.Expiry()}}
	joined, led := make(map[string]bool), make(map[string]eldest.Token) // by key, by participant
	for _, f := range facts {
		tell := func(e oracle.Event) {
			e.At = f.At.Sub(begin)
			if e.Token == 0 {
				e.Token, e.Key = int64(f.Token), f.Key
			}
			h.Events = append(h.Events, e)
		}
		is := func(kind oracle.Kind, code int) {
			tell(oracle.Event{Kind: kind, Who: f.Participant, Code: code, Text: f.Cause})
		}
		token, leads := led[f.Participant]
		// The report of a registration may have a later time than its consequences.
		if (f.Kind == Registered || f.Kind == Waiting || f.Kind == Won) && !joined[f.Key] {
			joined[f.Key] = true
			is(oracle.Joined, 0)
		}
		switch {
		case same[f.Kind] != "":
			is(same[f.Kind], 0)
		case f.Kind == Won || f.leads() && token != f.Token:
			led[f.Participant] = f.Token
			is(oracle.Won, 0)
		case f.Kind == Status && !f.leads() && leads:
			delete(led, f.Participant)
			tell(oracle.Event{Kind: oracle.Ended, Who: f.Participant, Token: int64(token)})
		case f.Kind == Lost || f.Kind == Resigned:
			kind, code := oracle.Failed, 0
			if leads && token == f.Token {
				kind = oracle.Ended
			}
			if f.Kind == Lost {
				code = CodeLost
			}
			is(kind, code)
		case f.Kind == Acted && f.Action == Start:
			is(oracle.Joined, 0)
		case f.Kind == Acted && (f.Action.Deposes() || f.Action == Withdraw):
			step := oracle.Event{Kind: oracle.Acted, Text: string(f.Action)}
			if f.Action.Deposes() {
				step.Until = f.At.Sub(begin) + c.Limit(f.Action)
			}
			tell(step)
			if f.Action.crashes() {
				is(oracle.Crashed, CodeKilled)
			}
			if f.Action.removes() {
				tell(oracle.Event{Kind: oracle.Removed})
			}
		case f.Kind == Exited:
			is(oracle.Exited, f.Code)
		case f.Kind == Left && f.Keys+f.Leases > 0:
			tell(oracle.Event{Kind: oracle.Left, Text: "in etcd: " + story.Count(f.Keys, "key") + " and " + story.Count(f.Leases, "lease")})
		}
		if more != nil {
			more(f, tell)
		}
	}
	Number(h)
	return h
}

// Limit is the longest time for the hand-over after an action.
func (c Config) Limit(a Action) time.Duration {
	if a.Told() {
		return c.Told()
	}
	return c.Expiry()
}

// Number sorts and numbers the events of a history.
func Number(h *oracle.History) {
	slices.SortStableFunc(h.Events, func(a, b oracle.Event) int { return cmp.Compare(a.At, b.At) })
	for i := range h.Events {
		h.Events[i].Seq = i + 1
	}
}
