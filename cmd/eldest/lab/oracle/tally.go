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
	Fenced    int            `json:"fenced"`     // tokens that the fenced store accepted
	FencedOff int            `json:"fenced_off"` // older tokens that it refused
}

// Needs says what a run must have had to prove anything: the least of each, and the
// names of faults that must have taken effect at least once. What is 0 is not needed,
// but a run without tenures, acknowledged writes or changes of the store never
// proves anything.
type Needs struct {
	Faults                         []string
	Tenures, Acked, Refused, Reads int
	Samples, LongStops, Healed     int
	Queues, Fenced                 int
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
// invariant that nothing put to the test is not one that held.
func (h *History) Invalid(n Needs) []string {
	var out []string
	t := h.Tally()
	least := func(what string, got, need int) {
		if got < need {
			out = append(out, fmt.Sprintf("%s: %d, of at least %d", what, got, need))
		}
	}
	least("tenures", t.Tenures, max(1, n.Tenures))
	least("acknowledged writes", t.Acked, max(1, n.Acked))
	least("changes of the store", len(h.Changes), 1)
	least("refused writes", t.Refused, n.Refused)
	least("reads", t.Reads, n.Reads)
	least("samples", t.Samples, n.Samples)
	least("stops of a leader longer than its lease", t.LongStops, n.LongStops)
	least("times that all had healed", t.Healed, n.Healed)
	least("lists of the queue", t.Queues, n.Queues)
	least("tokens in the fenced store", t.Fenced, n.Fenced)
	for _, name := range n.Faults {
		least("faults of kind "+name, t.Struck[name], 1)
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
