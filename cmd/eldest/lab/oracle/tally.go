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
	Samples   int            `json:"samples"`    // answers to the question whether somebody is sure to lead
	LongStops int            `json:"long_stops"` // stops of somebody who led, longer than its lease, with a sample after
	Healed    int            `json:"healed"`     // times that all had healed, and nothing struck before somebody had to lead
	Queues    int            `json:"queues"`
	Suspended int            `json:"suspended,omitempty"`
	Resumed   int            `json:"resumed,omitempty"`
	Evicted   int            `json:"evicted,omitempty"`
	Fenced    int            `json:"fenced"`     // tokens that the fenced store accepted
	FencedOff int            `json:"fenced_off"` // older tokens that it refused
}

// counts are the numbers of a tally, by what people call them.
func (t *Tally) counts() []count {
	return []count{
		{"tenures", &t.Tenures}, {"acknowledged writes", &t.Acked}, {"refused writes", &t.Refused}, {"writes of unknown outcome", &t.Unclear},
		{"reads", &t.Reads}, {"samples", &t.Samples}, {"stops of a leader longer than its lease", &t.LongStops},
		{"times that all had healed", &t.Healed}, {"lists of the queue", &t.Queues},
		{"suspensions", &t.Suspended}, {"tenures that led on", &t.Resumed}, {"evictions", &t.Evicted},
		{"tokens in the fenced store", &t.Fenced}, {"older tokens that the fenced store refused", &t.FencedOff},
	}
}

type count struct {
	of string
	n  *int
}

// Add adds what another history had.
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

// Tally counts.
func (h *History) Tally() Tally {
	t := Tally{Struck: map[string]int{}}
	for _, e := range h.Events {
		switch e.Kind {
		case Struck:
			t.Struck[e.Text]++
		case Won:
			t.Tenures++
		case Suspended:
			t.Suspended++
		case Resumed:
			t.Resumed++
		case Evicted:
			t.Evicted++
		case Acked:
			t.Acked++
		case Refused:
			t.Refused++
		case Unclear:
			t.Unclear++
		case Read:
			t.Reads++
		case Sure, NotSure:
			t.Samples++
		case Queue:
			t.Queues++
		case FenceAccepted:
			t.Fenced++
		case FenceRefused:
			t.FencedOff++
		case Healed:
			if h.calm(e.At, e.At+h.recovery()) && h.alive(e.At) {
				t.Healed++
			}
		}
	}
	t.LongStops = h.longStops()
	return t
}

// longStops counts the stops that put Leading to the test: of somebody who had told
// of a tenure and not of its end, and who was asked after it.
func (h *History) longStops() int {
	stops := h.stops()
	over, asked := map[claim]time.Duration{}, map[claim]time.Duration{}
	for _, e := range h.Events {
		c := claim{e.Who, e.Token}
		if e.Kind == Sure || e.Kind == NotSure {
			asked[c] = max(asked[c], e.At)
		}
		if _, ok := over[c]; !ok && (e.Kind == Ended || e.Kind == NotSure) {
			over[c] = e.At
		}
	}
	n := 0
	for _, t := range h.tenures() {
		c := claim{t.who, t.token}
		ended, ok := over[c]
		for _, s := range stops[t.who] {
			led := t.won.At <= s.from && (!ok || ended > s.from)
			if led && s.outlives(t, h.TTL) && asked[c] >= s.till {
				n++
			}
		}
	}
	return n
}

// Invalid says why a run proves nothing, a reason a line, or nothing at all. An
// invariant that nothing put to the test is not one that held. least is what it must have
// had; without a tenure, an acknowledged write or a change of the store no run ever
// proves anything.
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
	return append(out, h.muddled()...)
}

// muddled finds what makes a history unfit to be judged: writes whose names are not
// their own or that ended twice, and participants of whom something is told after their crash.
func (h *History) muddled() []string {
	var out []string
	sent, told := map[string]int{}, map[string]int{}
	for _, e := range h.Events {
		switch e.Kind {
		case Sent:
			sent[e.Write]++
		case Acked, Refused, Unclear:
			told[e.Write]++
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
	crashed := map[string]bool{}
	for _, e := range h.Events {
		if e.Kind == Joined && crashed[e.Who] {
			out = append(out, fmt.Sprintf("%s joined after its crash: a new process needs a new name", e.Who))
		}
		crashed[e.Who] = crashed[e.Who] || e.Kind == Crashed
	}
	return out
}
