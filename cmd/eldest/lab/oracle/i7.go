package oracle

import (
	"math"
	"slices"
	"time"
)

const (
	// handover is how soon a successor with a good network must lead.
	handover = 100 * time.Millisecond
	// recovery is how long a network's troubles may be felt after they ended:
	// gRPC dials again with a back-off of its own.
	recovery = 8 * time.Second
	// yielding is how long who gives way may stand at the head of the queue first.
	yielding = time.Second
)

// I7 checks: what is well stays well. Nobody loses a session, is suspended or is evicted while nothing was wrong
// with its host or the server within the TTL (one lost reply is nothing wrong).
// With a session, nobody gives up a candidacy or tenure unless told to, or unless
// its key was taken away, or a server in trouble refused it. And whoever becomes the oldest
// with nothing wrong leads within a tenth of a second; or is to give way, and has, or leads
// all the same, within a second more.
func I7(h *History) []Violation {
	return slices.Concat(lostForNothing(h), suspendedForNothing(h), gaveUp(h), slow(h))
}

func lostForNothing(h *History) []Violation {
	var out []Violation
	lease := map[string]int64{}
	removed := map[int64]bool{}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined:
			lease[e.Who] = e.Lease
		case Removed:
			removed[LeaseOf(e.Key)] = true
		case Failed, Ended:
			if e.Lost && !removed[lease[e.Who]] && !troubled(h, e.Who, e.At-h.TTL, e.At) {
				out = append(out, violated("I7", e.At, "%s lost its session although nothing was wrong: %s", e.Who, e.Text))
			}
		}
	}
	return out
}

// suspendedForNothing finds those who were suspended or evicted although they and the server were well.
func suspendedForNothing(h *History) []Violation {
	var out []Violation
	owner := map[int64]string{}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined:
			owner[e.Lease] = e.Who
		case Suspended:
			if !troubled(h, e.Who, e.At-h.TTL, e.At) {
				out = append(out, violated("I7", e.At, "%s was suspended although nothing was wrong: %s", e.Who, e.Text))
			}
		case Evicted:
			if who := owner[LeaseOf(e.Key)]; !troubled(h, who, e.At-h.TTL, e.At) && !tells(h, who, 0, e.At, Crashed) {
				out = append(out, violated("I7", e.At, "%s evicted %s (token %d), with which nothing was wrong", e.Who, who, e.Token))
			}
		}
	}
	return out
}

// evicted reports whether a key of a lease that beats is gone, and it may be that somebody evicted it.
func evicted(h *History, q *queue, joined, e Event) bool {
	for _, l := range q.lives {
		if l.lease == joined.Lease && l.removed && l.died >= joined.At && l.died <= e.At {
			return joined.Beat > 0 && troubled(h, e.Who, e.At-h.TTL, e.At)
		}
	}
	return false
}

func gaveUp(h *History) []Violation {
	var out []Violation
	q, joined := h.queue(), map[string]Event{}
	told, removed := map[string]bool{}, map[int64]bool{}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined:
			joined[e.Who], told[e.Who] = e, false
		case Leaving, Resigning:
			told[e.Who] = true
		case Removed:
			removed[LeaseOf(e.Key)] = true
		case Failed, Ended:
			refused := e.Denied && troubled(h, "", e.At, e.At)
			if !e.Lost && !told[e.Who] && !removed[joined[e.Who].Lease] && !refused && !evicted(h, q, joined[e.Who], e) {
				out = append(out, violated("I7", e.At, "%s gave up with a live session, unasked: %s", e.Who, e.Text))
			}
		}
	}
	return out
}

func slow(h *History) []Violation {
	var out []Violation
	q := h.queue()
	var since time.Duration // when the last of the older ones went
	for _, l := range q.lives {
		turn := max(since, l.born)
		who := waitsAt(h, l, turn)
		since = max(since, l.died)
		if l.gone == math.MaxInt64 {
			since = time.Duration(math.MaxInt64) // nobody younger has a turn
		}
		due := turn + handover
		if who != "" && tells(h, who, turn, due, Yielded) {
			due += yielding
		}
		if turn == time.Duration(math.MaxInt64) || l.removed && l.died <= due || who == "" || due > end(h) {
			continue
		}
		if troubled(h, who, turn, due) || tells(h, who, turn, due, Failed, Crashed) || winsBy(h, who, l.create, due) {
			continue
		}
		out = append(out, violated("I7", due, "%s (create %d) was the oldest at %v, with nothing wrong, and did not lead by %v", who, l.create, turn, due))
	}
	return out
}

// waitsAt returns who campaigns with the life's lease at an instant, or leads by
// it already.
func waitsAt(h *History, l *life, at time.Duration) string {
	who := ""
	for _, e := range h.Events {
		switch {
		case e.At > at:
			return who
		case e.Kind == Joined && e.Lease == l.lease:
			who = e.Who
		case e.Who == who && (e.Kind == Failed || e.Kind == Crashed):
			who = ""
		}
	}
	return who
}

// troubled reports whether something was wrong with who's way to the server, or
// may still have been felt, at any time in [from, to].
func troubled(h *History, who string, from, to time.Duration) bool {
	for _, e := range h.Events {
		if e.Kind == Trouble && (e.Who == who || e.Who == "") && e.At <= to && e.Until+recovery >= from {
			return true
		}
	}
	return false
}

// tells reports whether who told one of these in [from, to].
func tells(h *History, who string, from, to time.Duration, kinds ...Kind) bool {
	for _, e := range h.Events {
		if e.Who == who && e.At >= from && e.At <= to && slices.Contains(kinds, e.Kind) {
			return true
		}
	}
	return false
}

func winsBy(h *History, who string, token int64, due time.Duration) bool {
	for _, e := range h.Events {
		if e.Who == who && e.Kind == Won && e.Token == token && e.At <= due {
			return true
		}
	}
	return false
}
