package demo

import (
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// What candidates report of themselves: the events of "eldest campaign --json".
const (
	Registered scenario.Kind = "registered"
	Waiting    scenario.Kind = "waiting"
	Won        scenario.Kind = "leader"
	Jeopardy   scenario.Kind = "jeopardy"
	Recovered  scenario.Kind = "recovered"
	Lost       scenario.Kind = "lost"
	Resigned   scenario.Kind = "resigned"
	Suspended  scenario.Kind = "suspended"
	Resumed    scenario.Kind = "resumed"
	Evicted    scenario.Kind = "evicted"
)

// What the demo does and sees.
const (
	// Observed: the observer reports State, and Key and Token of the leader.
	Observed scenario.Kind = "observed"
	// Guarded: a write under the guard of Key and Token was Accepted or not.
	Guarded scenario.Kind = "guarded"
)

// The actions of the demo, beside those that all have.
const (
	Resign   scenario.Action = "resign"
	Withdraw scenario.Action = "withdraw"
	Silence  scenario.Action = "silence" // a kill, of one with heartbeats
	Delete   scenario.Action = "delete"
	Cut      scenario.Action = "cut"
)

// candidacy is the life of one key, put together from the facts.
type candidacy struct {
	name, key string
	token     eldest.Token
	// won is when it won; zero: never.
	won time.Time
	// ended is the instant from which it counts as gone (see the package comment); zero: never.
	// told is when the candidate itself reported the end.
	ended, told time.Time
	// action is what the demo did to end it, at began; "" if it ended by itself.
	action scenario.Action
	began  time.Time
}

// candidacies returns all, in the order of their tokens.
func candidacies(facts []scenario.Fact) []*candidacy {
	byKey := make(map[string]*candidacy)
	var all []*candidacy
	for _, f := range facts {
		if f.Kind == Registered {
			c := &candidacy{name: f.Participant, key: f.Key, token: f.Token}
			all, byKey[f.Key] = append(all, c), c
		}
	}
	// A second pass, because a report of a registration may carry a later time
	// than what followed from it.
	for _, f := range facts {
		c := byKey[f.Key]
		switch {
		case c == nil:
		case f.Kind == Won && c.won.IsZero():
			c.won = f.At
		case f.Kind == Lost || f.Kind == Resigned:
			c.told = f.At
			c.end(f.At)
		case f.Kind == scenario.Acted && f.Action != scenario.Mend && c.ended.IsZero():
			c.action, c.began = f.Action, f.At
			if f.Action == scenario.Kill || f.Action == Silence || f.Action == Delete {
				c.end(f.At)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *candidacy) int { return int(a.token - b.token) })
	return all
}

func (c *candidacy) end(at time.Time) {
	if c.ended.IsZero() {
		c.ended = at
	}
}

// candidates returns those that are queued, by what has been reported, the oldest first.
func candidates(facts []scenario.Fact) []*candidacy {
	return slices.DeleteFunc(candidacies(scenario.InOrder(facts)), func(c *candidacy) bool { return !c.ended.IsZero() })
}

// leaderOf returns the leader, by what the candidates report, or nil.
func leaderOf(facts []scenario.Fact) *candidacy {
	if queue := candidates(facts); len(queue) > 0 && !queue[0].won.IsZero() {
		return queue[0]
	}
	return nil
}

// tenures returns the candidacies that won, in the order of their wins. facts are in order.
func tenures(facts []scenario.Fact) []*candidacy {
	led := slices.DeleteFunc(candidacies(facts), func(c *candidacy) bool { return c.won.IsZero() })
	slices.SortStableFunc(led, func(a, b *candidacy) int { return a.won.Compare(b.won) })
	return led
}

// Handover is the change from one leader to the next.
type Handover struct {
	// Action is what caused it; "" if the demo did nothing to cause it.
	Action   scenario.Action `json:"action,omitempty"`
	From     string          `json:"from"`
	To       string          `json:"to"`
	OldToken eldest.Token    `json:"old_token"`
	NewToken eldest.Token    `json:"new_token"`
	// TookMS is the time from the action (without one: from the end of the old tenure) to
	// the successor's win, NeitherMS the part of it in which nobody led; in milliseconds.
	TookMS    float64 `json:"took_ms"`
	NeitherMS float64 `json:"neither_ms"`

	took, neither time.Duration
	// told is how long after the action the old leader was notified; 0: it never was.
	told time.Duration
}

// handovers returns the changes of leader, in order. facts are in order.
func handovers(facts []scenario.Fact) []Handover {
	led := tenures(facts)
	var changes []Handover
	for i := 1; i < len(led); i++ {
		old, next := led[i-1], led[i]
		h := Handover{Action: old.action, From: old.name, To: next.name, OldToken: old.token, NewToken: next.token}
		begin := old.began
		if begin.IsZero() {
			begin = old.ended
		}
		if !begin.IsZero() {
			h.took = next.won.Sub(begin)
		}
		if !old.ended.IsZero() {
			h.neither = next.won.Sub(old.ended)
		}
		if !old.told.IsZero() && !begin.IsZero() {
			h.told = old.told.Sub(begin)
		}
		h.TookMS, h.NeitherMS = story.InMillis(h.took), story.InMillis(h.neither)
		changes = append(changes, h)
	}
	return changes
}

// causes is why a leader has a successor, in words.
var causes = map[scenario.Action]string{
	Resign: "resigned", scenario.Kill: "was killed", Silence: "was killed", Delete: "lost its key", Cut: "was partitioned",
	scenario.Leave: "left", "": "ended by itself", Withdraw: "ended by itself",
}

// handoverWords is one hand-over in words.
type handoverWords struct{ who, took, why, tail string }

func (h Handover) words() handoverWords {
	w := handoverWords{who: h.From + " -> " + h.To, took: story.Millis(h.took), why: h.From + " " + causes[h.Action]}
	switch h.Action {
	case Delete:
		w.tail = fmt.Sprintf("%s was notified after %s", h.From, story.Millis(h.told))
	case scenario.Kill:
		w.tail = "its lease had to expire"
	case Silence:
		w.tail = "its heartbeats had stopped"
	default:
		w.tail = fmt.Sprintf("nobody led for %s", story.Millis(h.neither))
	}
	return w
}
