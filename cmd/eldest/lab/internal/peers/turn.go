package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// opening a client, winning an election that nobody leads, being queued.
	settingUp = 30 * time.Second
	// settled is how long a turn waits, at least and up to twice as long or so, after it is set up: a fault
	// takes place at no particular point of the clients' timers.
	settled   = 300 * time.Millisecond
	maxSettle = 500 * time.Millisecond
	// many is how long a crowd may take.
	many = 2 * time.Minute
)

// errLimit is the cause of a context whose limit has passed: the awaited event is none.
var errLimit = errors.New("the limit has passed")

// turn is one round of one scenario of one system, in an election of its own. One goroutine uses it at a time.
type turn struct {
	*run
	site     *site
	scenario Scenario
	election string

	// leader has won the election, and waiter is queued, once the turn is set up.
	leader, waiter *participant
	// ready is when the fault may take place; fault when it did.
	ready, fault time.Time

	all   []*participant
	known map[string]bool // metrics of which the turn has a result
	err   error           // why the turn is over
}

func (r *run) newTurn(s *site, of Scenario) *turn {
	return &turn{run: r, site: s, scenario: of, election: r.nextElection(of), known: map[string]bool{}}
}

// nextElection returns a name that no other election of the run has.
func (r *run) nextElection(of Scenario) string {
	return fmt.Sprintf("%s-%d", of.Name, r.elections.Add(1))
}

// open starts a participant and opens its client.
func (t *turn) open(ctx context.Context) (*participant, error) {
	index := len(t.all)
	id := fmt.Sprintf("%s-p%d", t.election, index)
	p, err := startParticipant(t.spawner, []string{t.options.Executable, "bench", "peers-participant"}, id)
	if err != nil {
		return nil, err
	}
	t.all = append(t.all, p)
	ctx, cancel := context.WithTimeoutCause(ctx, 2*settingUp, fmt.Errorf("not within %v", 2*settingUp))
	defer cancel()
	_, err = p.call(ctx, request{Do: doOpen, Open: &opening{
		System: t.site.system.Name, Setting: t.site.setting, Endpoints: t.site.servers.Endpoints,
		Election: t.election, ID: id, Index: index,
	}})
	return p, err
}

// lead starts the leader.
func (t *turn) lead(ctx context.Context) (err error) {
	if err := t.site.broken(); err != nil {
		return err
	}
	if t.leader, err = t.open(ctx); err != nil {
		return err
	}
	return t.campaign(ctx, t.leader, false, evWon)
}

// wait starts the candidate that waits. If it writes, it appends entries when it leads.
func (t *turn) wait(ctx context.Context, writes bool) (err error) {
	if t.waiter, err = t.open(ctx); err != nil {
		return err
	}
	if err = t.campaign(ctx, t.waiter, writes, evQueued); err != nil {
		if lost := t.kept(time.Now()); lost != nil {
			return lost // the reason for which it is not queued
		}
	}
	return err
}

// kept returns an error, and counts it, if the leader lost its leadership before a time, the fault's or now: its
// client has reported that, or another participant has won.
func (t *turn) kept(until time.Time) error {
	for _, p := range t.all {
		event := evWon
		if p == t.leader {
			event = evLost
		}
		if r, ok := p.heard(event); ok && timeOf(r.At).Before(until) {
			t.results.unprovoked(t.site.system.Name, t.site.setting)
			return fmt.Errorf("the leader lost its leadership without a fault, %v before", until.Sub(timeOf(r.At)).Round(time.Millisecond))
		}
	}
	return nil
}

// campaign lets a participant campaign, and waits for an event of it.
func (t *turn) campaign(ctx context.Context, p *participant, writes bool, event string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settingUp, fmt.Errorf("not within %v", settingUp))
	defer cancel()
	if _, err := p.call(ctx, request{Do: doCampaign, Append: writes}); err != nil {
		return err
	}
	_, err := p.await(ctx, event)
	return err
}

// setUp starts a leader and a candidate that waits.
func (t *turn) setUp(ctx context.Context, writes bool) error {
	if err := t.lead(ctx); err != nil {
		return err
	}
	if err := t.wait(ctx, writes); err != nil {
		return err
	}
	t.ready = time.Now().Add(settled + rand.N(maxSettle))
	return nil
}

// settle blocks until the turn is ready, or ctx ends.
func (t *turn) settle(ctx context.Context) { pause(ctx, time.Until(t.ready)) }

// successor waits for the successor's win. It returns an error that wraps errLimit if nobody has won in time.
func (t *turn) successor(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, t.fault.Add(t.site.limit()), errLimit)
	defer cancel()
	won, err := t.waiter.await(ctx, evWon)
	if lost := t.kept(t.fault); lost != nil {
		return won, lost
	}
	return won, err
}

// at is the point of a metric.
func (t *turn) at(metric string) point {
	return t.point(t.site.system.Name, t.site.setting, t.scenario, metric)
}

// once reports whether the turn has no result of a metric yet, and its unit.
func (t *turn) once(metric string) (unit string, ok bool) {
	again := t.known[metric]
	t.known[metric] = true
	for _, m := range t.scenario.Metrics {
		if m.Name == metric {
			return m.Unit, !again
		}
	}
	panic("peers: scenario " + t.scenario.Name + " has no metric " + metric)
}

// sample records a measurement.
func (t *turn) sample(metric string, value int64) {
	if unit, ok := t.once(metric); ok {
		t.results.record(t.at(metric), unit, func(of *Result) { of.Samples = append(of.Samples, value) })
	}
}

// flag records whether something has happened.
func (t *turn) flag(metric string, happened bool) {
	value := int64(0)
	if happened {
		value = 1
	}
	t.sample(metric, value)
}

// over records why the turn has no results of the metrics that are left: that the limit has passed, that the system
// does not have them, or an error.
func (t *turn) over(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return // an interrupted turn has neither results nor errors
	}
	if died := t.site.broken(); died != nil {
		err = died // the cause of whatever has failed
	}
	if errors.Is(err, errors.ErrUnsupported) && len(t.known) == 0 {
		t.results.lack(Lack{System: t.site.system.Name, Setting: t.site.setting, Scenario: t.scenario.Name, Reason: shorten(err).Error()})
		return
	}
	for _, m := range t.scenario.Metrics {
		t.miss(m.Name, err)
	}
}

// miss records why there is no result of one metric.
func (t *turn) miss(metric string, err error) {
	unit, ok := t.once(metric)
	switch {
	case !ok:
	case errors.Is(err, errLimit):
		t.results.record(t.at(metric), unit, func(of *Result) { // the event did not happen
			of.None++
			of.Limit = max(of.Limit, t.site.limit())
		})
	case errors.Is(err, errors.ErrUnsupported):
		t.results.lack(Lack{System: t.site.system.Name, Setting: t.site.setting, Scenario: t.scenario.Name + "/" + metric, Reason: shorten(err).Error()})
	default:
		t.results.fail(t.at(metric), unit, err)
	}
}

// close ends all participants.
func (t *turn) close() {
	var wg sync.WaitGroup
	for _, p := range t.all {
		wg.Go(p.close)
	}
	wg.Wait()
}
