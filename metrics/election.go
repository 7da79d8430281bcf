package metrics

import (
	"errors"
	"maps"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Election is the collector of one participant in one election. It is made by New. All methods are
// safe for concurrent use, and none blocks.
type Election struct {
	// Metrics that are updated by hooks.
	sessions, atRisk, campaigns, wins, foreign prometheus.Counter
	missed, suspensions, evictions             prometheus.Counter
	gone, left, ended, restarts                *prometheus.CounterVec
	latency, slack, wait, proof, beats         prometheus.Histogram
	muted                                      prometheus.Gauge
	// Metrics that are computed at each scrape.
	state, token, leader, remaining, certain, ttl, queue, watching, readers, dropped *prometheus.Desc

	mu sync.Mutex
	// session and candidate are the newest ones that the hooks reported; nil before that.
	session   *lease.Session
	candidate *election.Candidate
	observers map[*observe.Observer]bool
	node      Node
	// drained counts the dropped calls, and subscribed the subscriptions, of sessions, candidates
	// and observers that are no longer read.
	drained    int
	subscribed int64
}

// New makes the collector of a participant in the named election. All its values are 0 until its
// Hooks are called. Labels are text: bytes of the name that are not UTF-8 are replaced by U+FFFD.
func New(election string) *Election {
	of := prometheus.Labels{"election": strings.ToValidUTF8(election, "\ufffd")}
	return &Election{
		sessions: sessionsDef.one(of), atRisk: atRiskDef.one(of), campaigns: campaignsDef.one(of),
		wins: winsDef.one(of), foreign: foreignDef.one(of),
		missed: missedDef.one(of), suspensions: suspendedDef.one(of), evictions: evictionsDef.one(of),
		gone: goneDef.counters(of), left: leftDef.counters(of), ended: endedDef.counters(of), restarts: restartsDef.counters(of),
		latency: latencyDef.histogram(of), slack: slackDef.histogram(of), wait: waitDef.histogram(of), proof: proofDef.histogram(of),
		beats: beatDef.histogram(of), muted: mutedDef.gauge(of),
		state: stateDef.desc(of), token: tokenDef.desc(of), leader: leaderDef.desc(of), remaining: remainingDef.desc(of), certain: certainDef.desc(of),
		ttl: ttlDef.desc(of), queue: queueDef.desc(of), watching: observersDef.desc(of), readers: readersDef.desc(of),
		dropped:   droppedDef.desc(of),
		observers: make(map[*observe.Observer]bool),
	}
}

// Node has the status of a node: an *elector.Elector or a *curator.Curator.
type Node interface{ Status() elector.Status }

// Attach makes the collector compute the state and the leader's token from a node's status, from
// now on. The status differs from the candidate's state while a node drains: it is unknown, while
// the key still exists.
func (e *Election) Attach(n Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.node = n
}

// AttachCandidate makes the collector compute the gauges from a session and a candidate, from now
// on. The hooks do the same a moment after the session has opened and the candidate has registered,
// but not if a hook that is called before them blocks. Either may be nil.
func (e *Election) AttachCandidate(s *lease.Session, c *election.Candidate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s != nil {
		e.use(s)
	}
	if c != nil {
		e.stand(c)
	}
}

// use makes s the session that is read. The caller holds mu.
func (e *Election) use(s *lease.Session) {
	if e.session != nil && e.session != s {
		e.drained += e.session.Dropped()
	}
	e.session = s
}

// stand makes c the candidate that is read. The caller holds mu.
func (e *Election) stand(c *election.Candidate) {
	if e.candidate != nil && e.candidate != c {
		e.drained += e.candidate.Dropped()
	}
	e.candidate = c
}

// counting returns the parts that are collectors themselves.
func (e *Election) counting() []prometheus.Collector {
	return []prometheus.Collector{
		e.sessions, e.atRisk, e.campaigns, e.wins, e.foreign, e.gone, e.left, e.ended, e.restarts,
		e.latency, e.slack, e.wait, e.proof, e.beats, e.missed, e.muted, e.suspensions, e.evictions,
	}
}

// Describe implements prometheus.Collector.
func (e *Election) Describe(to chan<- *prometheus.Desc) {
	for _, c := range e.counting() {
		c.Describe(to)
	}
	for _, d := range []*prometheus.Desc{e.state, e.token, e.leader, e.remaining, e.certain, e.ttl, e.queue, e.watching, e.readers, e.dropped} {
		to <- d
	}
}

// Collect implements prometheus.Collector: it reads the clock, and sends nothing.
func (e *Election) Collect(to chan<- prometheus.Metric) {
	for _, c := range e.counting() {
		c.Collect(to)
	}
	now := e.look()
	number := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for _, role := range roles {
		number(e.state, prometheus.GaugeValue, one(role == now.role.String()), role)
	}
	number(e.token, prometheus.GaugeValue, float64(now.token))
	number(e.leader, prometheus.GaugeValue, float64(now.leader))
	number(e.remaining, prometheus.GaugeValue, now.remaining.Seconds())
	number(e.certain, prometheus.GaugeValue, now.certain.Seconds())
	number(e.ttl, prometheus.GaugeValue, now.ttl.Seconds())
	if now.queued {
		number(e.queue, prometheus.GaugeValue, float64(now.queue))
	}
	number(e.watching, prometheus.GaugeValue, float64(now.observers))
	number(e.readers, prometheus.CounterValue, float64(now.subscriptions))
	number(e.dropped, prometheus.CounterValue, float64(now.dropped))
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// standing copies what is read at a scrape, so that none of it is called under the lock.
func (e *Election) standing() (s *lease.Session, c *election.Candidate, n Node, observers map[*observe.Observer]bool, dropped int, subscribed int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for o := range e.observers {
		if errors.Is(o.State().Reason, eldest.ErrClosed) {
			e.drain(o) // the hook of its end was not called, or not yet
		}
	}
	return e.session, e.candidate, e.node, maps.Clone(e.observers), e.drained, e.subscribed
}

// drain removes an observer, and keeps its counts. The caller holds mu.
func (e *Election) drain(o *observe.Observer) {
	if e.observers[o] {
		delete(e.observers, o)
		e.drained += o.Dropped()
		e.subscribed += o.Subscriptions()
	}
}
