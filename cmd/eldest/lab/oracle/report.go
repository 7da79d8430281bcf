package oracle

import (
	"maps"
	"slices"
)

// Observations checks the notifications of observers (G6): neither tokens nor revisions go back;
// the reported leader did lead at that revision, or, if the revision is unknown, has won; no leader
// is reported only if the queue was empty; its key contains its lease; an unknown state has a
// reason. When a step is over, the last notification has its leader.
func Observations(h *History) []Violation {
	out := found{invariant: "G6"}
	won := map[int64]bool{}
	for _, e := range h.Events {
		won[e.Token] = won[e.Token] || e.Kind == Won
	}
	q := h.queue()
	tokens, revisions, last := map[string]int64{}, map[string]int64{}, map[string]Event{}
	for _, e := range h.Events {
		if e.Kind == Settled {
			for _, who := range slices.Sorted(maps.Keys(last)) {
				if o := last[who]; o.Token != e.Token || o.Text == Unknown {
					out.add(e.At, "when token %d led, %s had been notified: %s, token %d", e.Token, who, o.Text, o.Token)
				}
			}
		}
		if e.Kind != Observed {
			continue
		}
		last[e.Who] = e
		if e.Text == Unknown {
			if e.Reason == "" {
				out.add(e.At, "%s was notified of an unknown leader, without a reason", e.Who)
			}
			continue
		}
		if e.Commit != 0 {
			if e.Commit < revisions[e.Who] {
				out.add(e.At, "%s was notified of revision %d after %d", e.Who, e.Commit, revisions[e.Who])
			}
			revisions[e.Who] = e.Commit
			if truth := q.leader(e.Commit); e.Token != truth {
				out.add(e.At, "%s was notified at revision %d: %s, token %d, but token %d led", e.Who, e.Commit, e.Text, e.Token, truth)
			}
		} else if e.Text == Led && !won[e.Token] {
			out.add(e.At, "%s was notified of token %d, with which no candidate won", e.Who, e.Token)
		}
		if e.Text != Led {
			continue
		}
		if e.Token < tokens[e.Who] {
			out.add(e.At, "%s was notified of token %d after %d", e.Who, e.Token, tokens[e.Who])
		}
		tokens[e.Who] = e.Token
		if e.Lease != 0 && e.Lease != LeaseOf(e.Key) {
			out.add(e.At, "%s was notified of lease %x for key %s", e.Who, e.Lease, e.Key)
		}
	}
	return out.all
}

// Transfers checks the result that the caller of a transfer received: at the revision of its
// success the target was alive and the oldest; when the key of the leader that yielded was deleted,
// no other key was the oldest before the target's; and, if the order had to be kept, the others
// that existed before and after it are in the same order as before, unless they left by themselves
// in between: each has the key that it had, or the one with which it requeued.
func Transfers(h *History) []Violation {
	out := found{invariant: "transfers"}
	q := h.queue()
	for _, e := range h.Events {
		if e.Kind != Transferred {
			continue
		}
		if e.Token == 0 || q.leader(e.Commit) != e.Token {
			out.add(e.At, "token %d was reported to lead at revision %d, and was not alive and the oldest", e.Token, e.Commit)
			continue
		}
		if leader := q.byToken(e.Proof); leader != nil && leader.removed {
			if next := q.leader(leader.gone); next != e.Token {
				out.add(e.At, "token %d was to lead after token %d, and token %d was the next", e.Token, e.Proof, next)
			}
		}
		var last [2]*life // before and after
		for _, l := range q {
			if e.Text != KeepsOrder || !l.aliveAt(e.Plan) || l.create == e.Token || l.create == e.Proof {
				continue
			}
			for _, m := range q {
				if m.key != l.key || !m.aliveAt(e.Commit) || m != l && !slices.Contains(e.Tokens, m.create) {
					continue
				}
				if a, b := last[0], last[1]; a != nil && b.create > m.create {
					out.add(e.At, "%s was before %s (tokens %d, %d), and is behind it after a transfer that must keep the order (%d, %d)",
						a.key, l.key, a.create, l.create, b.create, m.create)
				}
				last = [2]*life{l, m}
			}
		}
	}
	return out.all
}

// Fence checks the store outside etcd that refuses older tokens: the tokens that it accepted never
// go back, in its own order. It also checks the store: one that refuses a token that is no older
// than all before cannot be relied on.
func Fence(h *History) []Violation {
	out := found{invariant: "fence"}
	newest := int64(0)
	for _, e := range h.Events {
		switch {
		case e.Kind == FenceAccepted && e.Token < newest:
			out.add(e.At, "the store accepted token %d of %s after token %d", e.Token, e.Who, newest)
		case e.Kind == FenceRefused && e.Token >= newest:
			out.add(e.At, "the store refused token %d of %s, and the newest it had accepted was %d", e.Token, e.Who, newest)
		case e.Kind == FenceAccepted:
			newest = e.Token
		}
	}
	return out.all
}

// Exits checks that each process ends with the exit code that the last report about it requires
// (Event.Code).
func Exits(h *History) []Violation {
	out := found{invariant: "exits"}
	last := map[string]Event{}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined, Ended, Failed, Crashed:
			last[e.Who] = e
		case Exited:
			if want := last[e.Who]; e.Code != want.Code {
				out.add(e.At, "%s ended with %d, not %d, after it had %s: %s", e.Who, e.Code, want.Code, want.Kind, e.Text)
			}
		}
	}
	return out.all
}

// Leftovers reports what the harness found when all participants had left.
func Leftovers(h *History) []Violation {
	out := found{invariant: "left"}
	for _, e := range h.Events {
		if e.Kind == Left {
			out.add(e.At, "%s remains after all participants have left", e.Text)
		}
	}
	return out.all
}
