package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Tally counts what the checkers had to judge.
type Tally struct {
	Struck    map[string]int `json:"struck"` // faults that took effect, by name
	Tenures   int            `json:"tenures"`
	Acked     int            `json:"acked"` // guarded writes
	Refused   int            `json:"refused"`
	Unclear   int            `json:"unclear"`
	Reads     int            `json:"reads"`
	Samples   int            `json:"samples"`    // checks whether a participant is sure to lead
	LongStops int            `json:"long_stops"` // stops of a leader, longer than its lease, with a sample after
	Healed    int            `json:"healed"`     // times that all faults had ended, and no fault took effect before a candidate had to lead
	Queues    int            `json:"queues"`
	Suspended int            `json:"suspended,omitempty"`
	Resumed   int            `json:"resumed,omitempty"`
	Evicted   int            `json:"evicted,omitempty"`
	Fenced    int            `json:"fenced"`     // tokens that the fenced store accepted
	FencedOff int            `json:"fenced_off"` // older tokens that it refused
}

// count is one number of a tally: its name, and the kinds of which it counts all events.
type count struct {
	of    string
	n     *int
	kinds []Kind
}

func (t *Tally) counts() []count {
	return []count{
		{"tenures", &t.Tenures, []Kind{Won}},
		{"acknowledged writes", &t.Acked, []Kind{Acked}},
		{"refused writes", &t.Refused, []Kind{Refused}},
		{"writes of unknown outcome", &t.Unclear, []Kind{Unclear}},
		{"reads", &t.Reads, []Kind{Read}},
		{"samples", &t.Samples, []Kind{Sure, NotSure}},
		{"stops of a leader longer than its lease", &t.LongStops, nil},
		{"recoveries from all faults", &t.Healed, nil},
		{"lists of the queue", &t.Queues, []Kind{Queue}},
		{"suspensions", &t.Suspended, []Kind{Suspended}},
		{"resumed tenures", &t.Resumed, []Kind{Resumed}},
		{"evictions", &t.Evicted, []Kind{Evicted}},
		{"tokens in the fenced store", &t.Fenced, []Kind{FenceAccepted}},
		{"older tokens that the fenced store refused", &t.FencedOff, []Kind{FenceRefused}},
	}
}

// Add adds another history's tally.
func (t *Tally) Add(o Tally) {
	more := o.counts()
	for i, c := range t.counts() {
		*c.n += *more[i].n
	}
	if t.Struck == nil {
		t.Struck = map[string]int{}
	}
	for name, n := range o.Struck {
		t.Struck[name] += n
	}
}

// Tally counts the events of the history.
func (h *History) Tally() Tally {
	t := Tally{Struck: map[string]int{}}
	of := map[Kind]*int{}
	for _, c := range t.counts() {
		for _, kind := range c.kinds {
			of[kind] = c.n
		}
	}
	for _, e := range h.Events {
		if n := of[e.Kind]; n != nil {
			*n++
		}
		if e.Kind == Struck {
			t.Struck[e.Text]++
		}
		if e.Kind == Healed && h.recovers(e.At) {
			t.Healed++
		}
	}
	t.LongStops = h.longStops()
	return t
}

// longStops counts the stops that test Leading: those of a participant that had reported a tenure
// and not its end, and that was sampled afterwards.
func (h *History) longStops() int {
	stops := h.stops()
	over, asked := map[claim]time.Duration{}, map[claim]time.Duration{}
	for _, e := range h.Events {
		c := e.claim()
		if e.Kind == Sure || e.Kind == NotSure {
			asked[c] = max(asked[c], e.At)
		}
		if _, ok := over[c]; !ok && (e.Kind == Ended || e.Kind == NotSure) {
			over[c] = e.At
		}
	}
	n := 0
	tenures, _ := h.tenures()
	for _, t := range tenures {
		ended, ok := over[t.claim]
		for _, s := range stops[t.who] {
			led := t.won.At <= s.from && (!ok || ended > s.from)
			if led && s.outlives(t, h.TTL) && asked[t.claim] >= s.till {
				n++
			}
		}
	}
	return n
}

// Invalid returns why a run proves nothing, one reason each; nothing if the run is valid. An
// invariant that nothing tested does not count as one that held. least is the least that the run
// must have; without a tenure, an acknowledged write or a change of the store no run proves
// anything. Neither does one with writes whose names are not unique or that ended twice, or with a
// participant that joins after its crash.
func (h *History) Invalid(least Tally) []string {
	var out []string
	lacks := func(what string, got, need int) {
		if got < need {
			out = append(out, fmt.Sprintf("%s: %d, of at least %d", what, got, need))
		}
	}
	had := h.Tally()
	least.Tenures, least.Acked = max(1, least.Tenures), max(1, least.Acked)
	need := least.counts()
	for i, c := range had.counts() {
		lacks(c.of, *c.n, *need[i].n)
	}
	lacks("changes of the store", len(h.Changes), 1)
	for _, name := range slices.Sorted(maps.Keys(least.Struck)) {
		lacks("faults of kind "+name, had.Struck[name], least.Struck[name])
	}
	sent, told, crashed := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, e := range h.Events {
		switch e.Kind {
		case Sent:
			sent[e.Write]++
		case Acked, Refused, Unclear:
			told[e.Write]++
		case Crashed:
			crashed[e.Who] = true
		case Joined:
			if crashed[e.Who] {
				out = append(out, fmt.Sprintf("%s joined after its crash (a new process needs a new name)", e.Who))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if told[name] > max(1, sent[name]) {
			out = append(out, fmt.Sprintf("write %s has %d outcomes", name, told[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if sent[name] > 1 {
			out = append(out, fmt.Sprintf("%d writes are named %s", sent[name], name))
		}
	}
	return out
}
