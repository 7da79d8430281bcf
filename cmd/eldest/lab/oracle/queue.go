package oracle

import (
	"math"
	"strings"
	"time"
)

// life is one existence of one candidate's key, from its creation to its
// deletion. The same key may have several.
type life struct {
	key     string
	create  int64
	lease   int64
	gone    int64 // revision of the deletion; math.MaxInt64 while it exists
	born    time.Duration
	died    time.Duration
	removed bool
}

func (l *life) aliveAt(rev int64) bool { return l.create <= rev && rev < l.gone }

// queue is the true queue at every revision: lives in create-revision order.
type queue []*life

func (h *History) queue() queue {
	var q queue
	open := map[string]*life{}
	for _, c := range h.Changes {
		switch l := open[c.Key]; {
		case !strings.HasPrefix(c.Key, h.Prefix):
		case c.Deleted && l != nil:
			l.gone, l.died, l.removed = c.Rev, c.At, true
			delete(open, c.Key)
		case !c.Deleted && c.Create == c.Rev:
			open[c.Key] = &life{key: c.Key, create: c.Rev, lease: LeaseOf(c.Key), gone: math.MaxInt64, born: c.At}
			q = append(q, open[c.Key])
		}
	}
	return q
}

// byToken returns the life of a key by its create revision.
func (q queue) byToken(token int64) *life {
	for _, l := range q {
		if l.create == token {
			return l
		}
	}
	return nil
}

// leader returns the token of the oldest key at rev; 0: there is no key.
func (q queue) leader(rev int64) int64 {
	for _, l := range q {
		if l.aliveAt(rev) {
			return l.create
		}
	}
	return 0
}

// leadsWithin reports whether token was the oldest at any revision in [from, to]. A life becomes
// the oldest when the last older one ends, and stays so until it ends itself: so one revision is
// enough to check.
func (q queue) leadsWithin(token, from, to int64) bool {
	l := q.byToken(token)
	if l == nil {
		return false
	}
	since := max(l.create, from)
	for _, older := range q {
		if older.create < token {
			since = max(since, older.gone)
		}
	}
	return since <= to && since < l.gone
}

// commit is one guarded write, as the store committed it.
type commit struct {
	Change
	register string // its name, where there are several
	token    int64
	name     string
}

// isRegister reports whether leaders write the key.
func (h *History) isRegister(key string) bool {
	return h.Data != "" && (key == h.Data || strings.HasPrefix(key, h.Data+"/"))
}

// commits returns the guarded writes in the order of revisions, and the other changes of registers:
// deletions, and values that no guarded write has.
func (h *History) commits() (all []commit, deleted, foreign []Change) {
	for _, c := range h.Changes {
		if !h.isRegister(c.Key) {
			continue
		}
		token, name, ok := parseWrite(c.Value)
		switch {
		case c.Deleted && c.Value == "":
			deleted = append(deleted, c)
		case !ok:
			foreign = append(foreign, c)
		default:
			all = append(all, commit{c, strings.TrimPrefix(strings.TrimPrefix(c.Key, h.Data), "/"), token, name})
		}
	}
	return all, deleted, foreign
}

// byName returns the writes that a client requested, by their names.
func (h *History) byName() map[string][]commit {
	named := map[string][]commit{}
	all, _, _ := h.commits()
	for _, c := range all {
		if !c.Opens {
			named[c.name] = append(named[c.name], c)
		}
	}
	return named
}
