package oracle

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// life is one existence of one candidate's key, from its creation to its
// deletion. The same key may have several.
type life struct {
	key     string
	create  int64
	lease   int64
	gone    int64 // revision of the deletion; math.MaxInt64 while it lives
	born    time.Duration
	died    time.Duration
	removed bool
}

func (l *life) aliveAt(rev int64) bool { return l.create <= rev && rev < l.gone }

// queue is the true queue at every revision.
type queue struct {
	lives []*life // in create-revision order
}

func (h *History) queue() *queue {
	q := &queue{}
	open := map[string]*life{}
	for _, c := range h.Changes {
		if !strings.HasPrefix(c.Key, h.Prefix) {
			continue
		}
		switch {
		case c.Deleted:
			if l := open[c.Key]; l != nil {
				l.gone, l.died, l.removed = c.Rev, c.At, true
				delete(open, c.Key)
			}
		case c.Create == c.Rev:
			l := &life{key: c.Key, create: c.Rev, lease: LeaseOf(c.Key), gone: math.MaxInt64, born: c.At}
			open[c.Key] = l
			q.lives = append(q.lives, l)
		}
	}
	return q
}

// byToken returns the life of a key by its create revision.
func (q *queue) byToken(token int64) *life {
	for _, l := range q.lives {
		if l.create == token {
			return l
		}
	}
	return nil
}

// oldest returns whoever leads at rev, or nil.
func (q *queue) oldest(rev int64) *life {
	for _, l := range q.lives {
		if l.aliveAt(rev) {
			return l
		}
	}
	return nil
}

// leadsWithin reports whether token was the oldest at any revision in
// [from, to]. A life becomes the oldest when the last older one goes, and stays
// so until it goes itself: one point to look at is enough.
func (q *queue) leadsWithin(token, from, to int64) bool {
	l := q.byToken(token)
	if l == nil {
		return false
	}
	since := max(l.create, from)
	for _, older := range q.lives {
		if older.create < token {
			since = max(since, older.gone)
		}
	}
	return since <= to && since < l.gone
}

// LeaseOf returns the lease in a candidate's key. It is in the name, and stays
// there when somebody overwrites the key without its lease. 0 for other keys.
func LeaseOf(key string) int64 {
	id, _ := strconv.ParseInt(key[strings.LastIndexByte(key, '/')+1:], 16, 64)
	return id
}
