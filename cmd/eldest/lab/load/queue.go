package load

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest/observe"
)

// patient is how often in a row something odd must be seen before it counts: a
// registration or the news of a removal may be under way at each look.
const patient = 4

// inspector compares etcd's queue with what the participants believe, look by look.
type inspector struct {
	patience time.Duration
	// first is who stood first at the last look, since is when that began.
	first string
	since time.Time
	// missing and strange count the looks at which a participant's key was not there, or
	// a key was nobody's.
	missing, strange map[string]int
}

func newInspector(patience time.Duration) *inspector {
	return &inspector{patience: patience, missing: map[string]int{}, strange: map[string]int{}}
}

// look is what there is to see at one moment.
type look struct {
	at time.Time
	// before and after are where everybody believed to stand before and after etcd was
	// asked for the queue, by slot.
	before, after []standing
	queue         []observe.Entry
	// ghost says when the participant with that key left without a word, if it did.
	ghost func(key string) (time.Time, bool)
	// leads is the newest token that has won.
	leads int64
}

// inspect returns what is wrong: whoever stood in the queue before and after the question
// is in the answer; whoever is in the answer stands, or is a ghost whose time has not
// come; and nobody stands first for long without leading.
func (i *inspector) inspect(l look) (wrong []string) {
	keys := make(map[string]bool, len(l.queue))
	for _, e := range l.queue {
		keys[e.Key] = true
	}
	believed := make(map[string]bool, 2*len(l.before))
	missing, strange := map[string]int{}, map[string]int{}
	for n, was := range l.before {
		is := l.after[n]
		believed[was.key], believed[is.key] = true, true
		if was.token > 0 && was == is && !keys[was.key] {
			missing[was.key] = i.missing[was.key] + 1
			if missing[was.key] == patient {
				wrong = append(wrong, fmt.Sprintf("lost: %s stands nowhere, and its participant does not know", was.key))
			}
		}
	}
	for _, e := range l.queue {
		at, ghost := l.ghost(e.Key)
		switch {
		case believed[e.Key]:
		case ghost && l.at.Sub(at) > i.patience:
			wrong = append(wrong, fmt.Sprintf("a ghost: %s is in the queue %v after it was abandoned", e.Key, l.at.Sub(at)))
		case !ghost:
			strange[e.Key] = i.strange[e.Key] + 1
			if strange[e.Key] == patient {
				wrong = append(wrong, fmt.Sprintf("a ghost: %s is in the queue, and nobody stands there", e.Key))
			}
		}
	}
	i.missing, i.strange = missing, strange
	first := ""
	if len(l.queue) > 0 {
		first = l.queue[0].Key
	}
	switch {
	case first == "" || first != i.first:
		i.first, i.since = first, l.at
	case int64(l.queue[0].Token) > l.leads && l.at.Sub(i.since) > i.patience:
		wrong = append(wrong, fmt.Sprintf("stuck: %s has been first for %v, and does not lead", first, l.at.Sub(i.since)))
		i.since = l.at
	}
	return wrong
}

// compare has the inspector look.
func (r *run) compare(ctx context.Context) error {
	l := look{before: r.all(), ghost: r.ghosts.since}
	asked := time.Now()
	var err error
	if l.queue, err = observe.Queue(ctx, r.admin, nil, candidates); err != nil {
		return err
	}
	l.after, l.at = r.all(), time.Now()
	leads, _ := r.line.latest()
	l.leads = int64(leads)
	for _, w := range r.inspector.inspect(l) {
		r.book.violation("%s", w)
	}
	r.ghosts.forget(l.queue, asked)
	return nil
}

// all is where everybody believes to stand.
func (r *run) all() []standing {
	where := make([]standing, 0, len(r.slots))
	for _, s := range r.slots {
		where = append(where, s.where())
	}
	return where
}
