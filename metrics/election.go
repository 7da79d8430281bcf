package metrics

import (
	"errors"
	"maps"
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
	set set

	mu  sync.Mutex
	now sources
}

// sources are what a scrape reads.
type sources struct {
	// session and candidate are the newest ones that the hooks reported; nil before that.
	session   *lease.Session
	candidate *election.Candidate
	observers map[*observe.Observer]bool
	node      Node
	// refused: etcd does not permit the heartbeats of the newest session.
	refused bool
	// dropped counts the dropped calls, and subscribed the subscriptions, of sessions, candidates
	// and observers that are no longer read.
	dropped    int
	subscribed int64
}

// New makes the collector of a participant in the named election. All its values are 0 until its
// Hooks are called. Labels are text: bytes of the name that are not UTF-8 are replaced by U+FFFD.
func New(election string) *Election {
	return &Election{set: newSet(election, definitions), now: sources{observers: make(map[*observe.Observer]bool)}}
}

// Node has the status of a node: an *elector.Elector or a *curator.Curator.
type Node interface{ Status() elector.Status }

// Attach makes the collector compute the state and the leader's token from a node's status, from
// now on. The status differs from the candidate's state while a node drains: it is unknown, while
// the key still exists.
func (e *Election) Attach(n Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now.node = n
}

// AttachCandidate makes the collector compute the gauges from a session and a candidate, from now
// on. The hooks do the same a moment after the session has opened and the candidate has registered,
// but not if a hook that is called before them blocks. Either may be nil.
func (e *Election) AttachCandidate(s *lease.Session, c *election.Candidate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if was := e.now.session; s != nil && s != was {
		if was != nil {
			e.now.dropped += was.Dropped()
		}
		e.now.session = s
	}
	if was := e.now.candidate; c != nil && c != was {
		if was != nil {
			e.now.dropped += was.Dropped()
		}
		e.now.candidate = c
	}
}

// Describe implements prometheus.Collector.
func (e *Election) Describe(to chan<- *prometheus.Desc) { e.set.describe(to) }

// Collect implements prometheus.Collector: it reads the clock, and sends nothing.
func (e *Election) Collect(to chan<- prometheus.Metric) {
	e.set.collect(to)
	now := e.look()
	for _, role := range roles {
		e.set.number(to, &stateDef, one(role == now.role.String()), role)
	}
	if now.queued {
		e.set.number(to, &queueDef, float64(now.queue))
	}
	for d, value := range map[*definition]float64{
		&tokenDef: float64(now.token), &leaderDef: float64(now.leader),
		&remainingDef: now.remaining.Seconds(), &certainDef: now.certain.Seconds(), &ttlDef: now.ttl.Seconds(),
		&observersDef: float64(now.observers), &readersDef: float64(now.subscriptions),
		&droppedDef: float64(now.dropped), &mutedDef: one(now.refused),
	} {
		e.set.number(to, d, value)
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// sources copies what is read at a scrape, so that none of it is called under the lock.
func (e *Election) sources() sources {
	e.mu.Lock()
	defer e.mu.Unlock()
	for o := range e.now.observers {
		if errors.Is(o.State().Reason, eldest.ErrClosed) {
			e.drain(o) // the hook of its end was not called, or not yet
		}
	}
	now := e.now
	now.observers = maps.Clone(now.observers)
	return now
}

// drain removes an observer, and keeps its counts. The caller holds mu.
func (e *Election) drain(o *observe.Observer) {
	if e.now.observers[o] {
		delete(e.now.observers, o)
		e.now.dropped += o.Dropped()
		e.now.subscribed += o.Subscriptions()
	}
}
