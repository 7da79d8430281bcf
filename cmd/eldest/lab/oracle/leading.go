package oracle

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Leading checks what processes say of themselves against one clock. A sample says
// that at some instant from its first reading to its second the participant was
// sure to lead, so only a win told before the first is certain to be earlier. Then:
//
//   - Nobody is sure to lead after a win by a newer token. Where the key or lease was
//     taken away by hand the news may be under way, until all has healed.
//   - Nobody is sure to lead after the store told that its key is gone, with the same
//     exception. This needs no successor.
//   - A participant that was stopped for longer than its lease could last is not
//     sure to lead by it at its first use after that, or ever.
//   - Who has heartbeats and was stopped for longer than their timeout is not sure either, before it
//     has told that it leads on.
//   - Who has once not been sure, or told of the end, is not sure again, before it has told that it
//     leads on. That it does is judged like a sample that began when it was suspended.
//
// A stop excuses nothing: what counts is the instant at which the participant looked,
// and while it is stopped it does not.
//
// Each tenure is reported once for each of these.
func Leading(h *History) []Violation {
	w := watch(h)
	suspended := map[claim]time.Duration{}
	var out []Violation
	for _, e := range h.Events {
		c := claim{e.Who, e.Token}
		switch e.Kind {
		case Sure:
			out = append(out, w.judge(e)...)
		case Suspended:
			suspended[c] = e.At
		case Resumed:
			e.At, e.Until = suspended[c], e.At
			out = append(out, w.judge(e)...)
		}
	}
	return out
}

// watchman knows what a sample is judged by.
type watchman struct {
	history *History
	tenures map[claim]*tenure
	wins    []*tenure // by token
	next    []time.Duration
	stops   map[string][]stop
	gone    map[int64]time.Duration // by token: when the key's deletion was told
	over    map[claim][]stop        // from when to when somebody was certainly not sure at some instant
	told    map[claim]map[string]bool
}

// claim is whose tenure it is.
type claim struct {
	who   string
	token int64
}

func watch(h *History) *watchman {
	w := &watchman{
		history: h, tenures: map[claim]*tenure{}, stops: h.stops(),
		gone: map[int64]time.Duration{}, over: map[claim][]stop{}, told: map[claim]map[string]bool{},
	}
	for _, l := range h.queue().lives {
		if l.removed {
			w.gone[l.create] = l.died
		}
	}
	for _, t := range h.tenures() {
		w.tenures[claim{t.who, t.token}] = t
		w.wins = append(w.wins, t)
	}
	slices.SortFunc(w.wins, func(a, b *tenure) int { return cmp.Compare(a.token, b.token) })
	w.next = make([]time.Duration, len(w.wins)+1)
	w.next[len(w.wins)] = math.MaxInt64
	for i := len(w.wins) - 1; i >= 0; i-- {
		w.next[i] = min(w.next[i+1], w.wins[i].won.At)
	}
	for _, e := range h.Events {
		if c := (claim{e.Who, e.Token}); e.Kind == NotSure || e.Kind == Ended || e.Kind == Suspended {
			w.over[c] = append(w.over[c], stop{e.At, max(e.At, e.Until)})
		}
	}
	return w
}

// newer returns when the first win by a newer token was told.
func (w *watchman) newer(token int64) time.Duration {
	i, _ := slices.BinarySearchFunc(w.wins, token+1, func(t *tenure, token int64) int { return cmp.Compare(t.token, token) })
	return w.next[i]
}

func (w *watchman) judge(e Event) []Violation {
	var out []Violation
	c := claim{e.Who, e.Token}
	report := func(what, format string, args ...any) {
		if w.told[c] == nil {
			w.told[c] = map[string]bool{}
		}
		if !w.told[c][what] {
			out = append(out, violated("leading", e.At, format, args...))
		}
		w.told[c][what] = true
	}
	t := w.tenures[c]
	if t == nil {
		report("never won", "%s is sure to lead by token %d and never told of winning it", e.Who, e.Token)
		return out
	}
	if at := w.newer(e.Token); at < e.At && !w.history.underway(t, at, e.At) {
		report("two", "%s (token %d) is sure to lead, and a newer token had won by %v, %v before", e.Who, e.Token, at, e.At-at)
	}
	if at, ok := w.gone[e.Token]; ok && at < e.At && !w.history.underway(t, at, e.At) {
		report("gone", "%s (token %d) is sure to lead, and its key was gone by %v, %v before", e.Who, e.Token, at, e.At-at)
	}
	since := t.spells[0].from.At // when it began to lead, as far as this sample can know
	for _, s := range t.spells {
		if s.from.At <= max(e.At, e.Until) {
			since = s.from.At
		}
	}
	for _, s := range w.stops[e.Who] {
		if t.beat > 0 && since <= s.from && s.till <= e.At && s.till-s.from > t.beat+settling {
			report("beat", "%s (token %d) is sure to lead after it was stopped from %v to %v, longer than its heartbeats' timeout of %v", e.Who, e.Token, s.from, s.till, t.beat)
		}
		if s.till <= e.At && s.outlives(t, w.history.TTL) {
			report("stop", "%s (token %d) is sure to lead after it was stopped from %v to %v, longer than its lease of %v", e.Who, e.Token, s.from, s.till, w.history.TTL)
		}
	}
	for _, o := range w.over[c] {
		if o.till < e.At && (since == t.won.At || o.from > since) {
			report("again", "%s (token %d) is sure to lead, and was not by %v", e.Who, e.Token, o.till)
		}
	}
	return out
}

// underway reports whether a tenure's key or lease was taken away by hand before
// somebody was told of what came of it, and its holder may still not know that at an
// instant. The news cannot be under way for longer
// than it takes to recover once nothing is wrong any more.
func (h *History) underway(t *tenure, told, at time.Duration) bool {
	for _, e := range h.Events {
		if e.Kind != Removed || !e.takes(t) || e.At > told {
			continue
		}
		known := time.Duration(math.MaxInt64)
		if e.Until != 0 {
			known = e.Until
		}
		for _, healed := range h.Events {
			if healed.Kind == Healed && healed.At >= e.At {
				known = min(known, healed.At+h.recovery())
			}
		}
		if at < known {
			return true
		}
	}
	return false
}

// takes reports whether a removal by hand is that of a tenure's key, or, where it
// names a lease and no token, of whatever was put with that lease.
func (e Event) takes(t *tenure) bool {
	return e.Token == t.token || e.Token == 0 && e.Lease != 0 && e.Lease == LeaseOf(t.won.Key)
}

// recovery is how soon after the faults all must be well.
func (h *History) recovery() time.Duration {
	if h.Recovery != 0 {
		return h.Recovery
	}
	return h.TTL + 3*time.Second
}
