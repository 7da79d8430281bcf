package clusterview

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/leasetime"
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
	for ctx.Err() == nil {
		pause := idle
		if v.log.Read() {
			began := time.Now()
			asked := v.polled()
			answers := leasetime.Ask(ctx, v.cfg.Client, asked, func(err error) { v.failed(ctx, err) })
			if ctx.Err() != nil {
				return // the answers are those of an end
			}
			v.show(answers)
			pause = max(leaseRound, time.Duration(len(asked))*perLease) - time.Since(began)
		} else {
			v.forget()
		}
		sleep(ctx, pause)
	}
}

// polled returns the leases to ask for.
func (v *View) polled() (asked []int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, e := range v.sorted() {
		if i == maxPolled {
			break
		}
		for _, p := range e.shown() {
			if p.lease == 0 || slices.Contains(asked, p.lease) {
				continue
			}
			if asked = append(asked, p.lease); len(asked) == maxLeases {
				return asked
			}
		}
	}
	return asked
}

// show takes the answers, and shows the queues that they are about, or the former ones were.
func (v *View) show(answers leases) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.leases
	v.leases = answers
	for _, e := range v.sorted() {
		if slices.ContainsFunc(e.shown(), func(p place) bool {
			_, was := before[p.lease]
			_, is := answers[p.lease]
			return was || is
		}) {
			v.showQueue(e)
		}
	}
}

// forget drops all answers: they would be old when the next page is opened.
func (v *View) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leases = leases{}
}

// sorted returns the elections by name. The caller holds mu.
func (v *View) sorted() []*election {
	all := make([]*election, 0, len(v.elections))
	for _, e := range v.elections {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *election) int { return strings.Compare(a.name, b.name) })
	return all
}
