package metrics

import "github.com/eldest-io/eldest/hooks"

// definition is one metric, as in Prometheus and in the documentation.
type definition struct {
	name, kind string
	// labels are the labels other than "election".
	labels []label
	help   string
	// buckets are the buckets of a histogram.
	buckets []float64
	// computed is set if a counter is computed at scrape, as all gauges are.
	computed bool
}

// label is a label, with all the values that it can have.
type label struct {
	name   string
	values []string
}

// by returns the one label of a metric.
func by(name string, values ...string) []label { return []label{{name, values}} }

const (
	gauge     = "gauge"
	counter   = "counter"
	histogram = "histogram"
)

// The causes with which a session can end.
const (
	sessionLost = "session_lost"
	closed      = "closed"
)

var (
	roles = []string{"leading", "following", "unknown"}
	// causes are the causes with which a candidacy or a tenure can end.
	causes = hooks.Causes()
)

var (
	stateDef     = definition{name: "eldest_state", kind: gauge, labels: by("state", roles...), help: "1 for what this participant is now, 0 for what it is not. Computed at scrape."}
	tokenDef     = definition{name: "eldest_token", kind: gauge, help: "Token of this participant's tenure or, while it waits, of its position in the queue; 0 without one."}
	leaderDef    = definition{name: "eldest_leader_token", kind: gauge, help: "Token of the leader according to this participant; 0 while there is no leader or it is unknown."}
	remainingDef = definition{name: "eldest_session_remaining_seconds", kind: gauge, help: "Time for which the lease is still certain, computed at scrape from the session's deadline; 0 without a session."}
	ttlDef       = definition{name: "eldest_session_ttl_seconds", kind: gauge, help: "Time to live that etcd granted; 0 without a session."}
	sessionsDef  = definition{name: "eldest_sessions_total", kind: counter, help: "Sessions opened."}
	goneDef      = definition{name: "eldest_sessions_ended_total", kind: counter, labels: by("cause", sessionLost, closed), help: "Sessions that ended: session_lost means that the deadline passed or etcd reported the loss; closed was requested."}
	atRiskDef    = definition{name: "eldest_at_risk_total", kind: counter, help: "Times that a renewal failed after one that had succeeded."}
	latencyDef   = definition{name: "eldest_renewal_latency_seconds", kind: histogram, help: "Time from sending a renewal to its confirmation.", buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}
	slackDef     = definition{name: "eldest_renewal_slack_ratio", kind: histogram, help: "Certain time that was left when a renewal was confirmed, as a part of the TTL; normally about 0.65.", buckets: []float64{.05, .1, .2, .33, .5, .6, .7, .8, .9}}
	campaignsDef = definition{name: "eldest_campaigns_total", kind: counter, help: "Positions taken in the queue."}
	beatDef      = definition{name: "eldest_heartbeat_latency_seconds", kind: histogram, help: "Time from sending a heartbeat to its acknowledgement; only with heartbeats, while the session leads.", buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}}
	missedDef    = definition{name: "eldest_heartbeats_failed_total", kind: counter, help: "Heartbeats that etcd did not acknowledge in time, or refused."}
	mutedDef     = definition{name: "eldest_heartbeats_refused", kind: gauge, help: "1 if etcd does not permit the heartbeats of the newest session, which leads by its lease alone; else 0."}
	certainDef   = definition{name: "eldest_leadership_remaining_seconds", kind: gauge, help: "Time for which no other candidate can lead, computed at scrape from the lease and the heartbeats; 0 without leadership."}
	suspendedDef = definition{name: "eldest_suspensions_total", kind: counter, help: "Times that a tenure was suspended because no heartbeat was acknowledged in time."}
	evictionsDef = definition{name: "eldest_evictions_total", kind: counter, help: "Leaders that this participant evicted because their heartbeats had stopped."}
	leftDef      = definition{name: "eldest_candidacies_ended_total", kind: counter, labels: by("cause", causes...), help: "Candidacies that ended without a win, by cause."}
	winsDef      = definition{name: "eldest_wins_total", kind: counter, help: "Tenures begun."}
	endedDef     = definition{name: "eldest_tenures_ended_total", kind: counter, labels: by("cause", causes...), help: "Tenures that ended, by cause: session_lost and deposed were not requested."}
	waitDef      = definition{name: "eldest_handover_wait_seconds", kind: histogram, help: "Time from entering the queue to the win.", buckets: []float64{.01, .1, 1, 10, 60, 600, 3600, 21600, 86400}}
	proofDef     = definition{name: "eldest_handover_proof_seconds", kind: histogram, help: "Time from the notification that the last predecessor's key was deleted to the win.", buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}
	queueDef     = definition{name: "eldest_queue_length", kind: gauge, help: "Candidates in the queue, the leader included, as read by an observer of this process; absent without an observer."}
	restartsDef  = definition{name: "eldest_watch_restarts_total", kind: counter, labels: by("watch", "candidate", "observer"), help: "Watches that broke, stopped responding or could not be opened, and were opened again."}
	observersDef = definition{name: "eldest_observers", kind: gauge, help: "Observers of this election that run in this process."}
	readersDef   = definition{name: "eldest_observer_subscriptions_total", kind: counter, computed: true, help: "Subscriptions made at the observers."}
	foreignDef   = definition{name: "eldest_foreign_keys_total", kind: counter, help: "Times that a key in the election's range was read that is not a candidate key."}
	droppedDef   = definition{name: "eldest_hooks_dropped_total", kind: counter, computed: true, help: "Hook calls that were dropped because a thousand waited behind one that blocks."}
)

// definitions are the metrics of an election, in the order of the documentation.
var definitions = []*definition{
	&stateDef, &tokenDef, &leaderDef, &remainingDef, &ttlDef, &sessionsDef, &goneDef, &atRiskDef, &latencyDef, &slackDef,
	&campaignsDef, &leftDef, &winsDef, &endedDef, &waitDef, &proofDef, &queueDef, &restartsDef, &observersDef, &readersDef,
	&foreignDef, &droppedDef, &beatDef, &missedDef, &mutedDef, &certainDef, &suspendedDef, &evictionsDef,
}

// names returns the names of the labels that vary within one election.
func (d *definition) names() []string {
	var names []string
	for _, l := range d.labels {
		names = append(names, l.name)
	}
	return names
}

// each calls f with every combination of the labels' values.
func (d *definition) each(f func(values ...string)) {
	combine(d.labels, nil, f)
}

func combine(labels []label, chosen []string, f func(values ...string)) {
	if len(labels) == 0 {
		f(chosen...)
		return
	}
	for _, value := range labels[0].values {
		combine(labels[1:], append(chosen[:len(chosen):len(chosen)], value), f)
	}
}
