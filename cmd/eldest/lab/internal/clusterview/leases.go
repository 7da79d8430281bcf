package clusterview

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/leasetime"
	"github.com/eldest-io/eldest/internal/retry"
)

// leases are the leases whose time left is known.
type leases map[int64]leasetime.Left

// unknown is the time left of a lease that is not known.
const unknown = -1

const (
	// maxPolled is how many elections, and maxLeases how many leases in all, are polled.
	maxPolled, maxLeases = 200, 200
	// leaseRound is the time between two requests for the same lease, and perLease the time between
	// two requests for any, on average.
	leaseRound, perLease = time.Second, 50 * time.Millisecond
)

// pollLeases asks for the time that leases have left, while a page is open, until ctx ends.
func (v *View) pollLeases(ctx context.Context) {
	for pause := idle; retry.Sleep(ctx, pause) == nil; {
		var answers leases // none without a page: they would be old when the next one is opened
		pause = idle
		if v.log.Read() {
			began, asked := time.Now(), v.polled()
			answers = leasetime.Ask(ctx, v.cfg.Client, asked, func(err error) { v.failed(ctx, err) })
			pause = max(leaseRound, time.Duration(len(asked))*perLease) - time.Since(began)
		}
		if ctx.Err() == nil { // else the answers are those of an end
			v.show(answers)
		}
	}
}

// polled returns the leases to ask for.
func (v *View) polled() (asked []int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.sorted()
	for _, e := range all[:min(len(all), maxPolled)] {
		for _, p := range e.shown() {
			if p.lease != 0 && len(asked) < maxLeases && !slices.Contains(asked, p.lease) {
				asked = append(asked, p.lease)
			}
		}
	}
	return asked
}

// show takes the answers, and shows the queues that they are about, or the former ones were.
func (v *View) show(answers leases) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.left
	v.left = answers
	for _, e := range v.elections {
		if slices.ContainsFunc(e.shown(), func(p place) bool {
			_, was := before[p.lease]
			_, is := answers[p.lease]
			return was || is
		}) {
			v.showQueue(e)
		}
	}
}

// sorted returns the elections by name. The caller holds mu.
func (v *View) sorted() []*election {
	return slices.SortedFunc(maps.Values(v.elections), func(a, b *election) int { return strings.Compare(a.name, b.name) })
}
