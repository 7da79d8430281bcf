package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/eldest-io/eldest/hooks"
)

// definition is one metric as Prometheus and the documentation know it.
type definition struct {
	name, kind string
	// labels are those beside "election", with their values.
	label  string
	values []string
	help   string
	// buckets are those of a histogram.
	buckets []float64
}

const (
	gauge     = "gauge"
	counter   = "counter"
	histogram = "histogram"
)

// What a session can end with.
const (
	sessionLost = "session_lost"
	closed      = "closed"
)

var (
	roles = []string{"leading", "following", "neither"}
	// causes are what a candidacy or a tenure can end with.
	causes = hooks.Causes()
)

var (
	stateDef     = definition{name: "eldest_state", kind: gauge, label: "state", values: roles, help: "1 for what this participant is now, 0 for what it is not. Computed at scrape."}
	tokenDef     = definition{name: "eldest_token", kind: gauge, help: "Token of the own tenure or, while waiting, of the own place in the queue; 0 without one."}
	leaderDef    = definition{name: "eldest_leader_token", kind: gauge, help: "Token of whoever leads, as far as this participant knows; 0 while it knows of nobody."}
	remainingDef = definition{name: "eldest_session_remaining_seconds", kind: gauge, help: "Time for which the lease is still certain, computed at scrape from the session's deadline; 0 without a session."}
	ttlDef       = definition{name: "eldest_session_ttl_seconds", kind: gauge, help: "Time to live that etcd granted; 0 without a session."}
	sessionsDef  = definition{name: "eldest_sessions_total", kind: counter, help: "Sessions opened."}
	goneDef      = definition{name: "eldest_sessions_ended_total", kind: counter, label: "cause", values: []string{sessionLost, closed}, help: "Sessions that ended: session_lost is the deadline or etcd's word, closed was asked for."}
	jeopardyDef  = definition{name: "eldest_jeopardies_total", kind: counter, help: "Times that a renewal failed after one that had not."}
	latencyDef   = definition{name: "eldest_renewal_latency_seconds", kind: histogram, help: "Time from sending a renewal to its confirmation.", buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}
	slackDef     = definition{name: "eldest_renewal_slack_ratio", kind: histogram, help: "Certain time that was left when a renewal was confirmed, as a part of the TTL; about 0.65 when all is well.", buckets: []float64{.05, .1, .2, .33, .5, .6, .7, .8, .9}}
	campaignsDef = definition{name: "eldest_campaigns_total", kind: counter, help: "Places taken in the queue."}
	leftDef      = definition{name: "eldest_candidacies_ended_total", kind: counter, label: "cause", values: causes, help: "Candidacies that ended without a win, by cause."}
	winsDef      = definition{name: "eldest_wins_total", kind: counter, help: "Tenures begun."}
	endedDef     = definition{name: "eldest_tenures_ended_total", kind: counter, label: "cause", values: causes, help: "Tenures that ended, by cause: session_lost and deposed were not asked for."}
	waitDef      = definition{name: "eldest_handover_wait_seconds", kind: histogram, help: "Time from the place in the queue to the win.", buckets: []float64{.01, .1, 1, 10, 60, 600, 3600, 21600, 86400}}
	proofDef     = definition{name: "eldest_handover_proof_seconds", kind: histogram, help: "Time from the news that the last predecessor was gone to the win.", buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}
	queueDef     = definition{name: "eldest_queue_length", kind: gauge, help: "Candidates that stand, the leader included, as an observer of this process sees it; absent where none does."}
	restartsDef  = definition{name: "eldest_watch_restarts_total", kind: counter, label: "watch", values: []string{"candidate", "observer"}, help: "Watches that broke, fell silent or were not to be had, and were opened again."}
	observersDef = definition{name: "eldest_observers", kind: gauge, help: "Observers of this election that run in this process."}
	readersDef   = definition{name: "eldest_observer_subscriptions_total", kind: counter, help: "Subscriptions made at the observers."}
	foreignDef   = definition{name: "eldest_foreign_keys_total", kind: counter, help: "Times that a key in the election's range was met that is no candidate's."}
	droppedDef   = definition{name: "eldest_hooks_dropped_total", kind: counter, help: "Hook calls that were dropped because a thousand waited behind one that blocks."}
)

// definitions are all of them, in the order of the documentation.
var definitions = []*definition{
	&stateDef, &tokenDef, &leaderDef, &remainingDef, &ttlDef, &sessionsDef, &goneDef, &jeopardyDef, &latencyDef, &slackDef,
	&campaignsDef, &leftDef, &winsDef, &endedDef, &waitDef, &proofDef, &queueDef, &restartsDef, &observersDef, &readersDef,
	&foreignDef, &droppedDef,
}

// labels are the names of the labels that vary within one election.
func (d *definition) labels() []string {
	if d.label == "" {
		return nil
	}
	return []string{d.label}
}

func (d *definition) desc(of prometheus.Labels) *prometheus.Desc {
	return prometheus.NewDesc(d.name, d.help, d.labels(), of)
}

// counters makes the counter, with all its label values at 0.
func (d *definition) counters(of prometheus.Labels) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.name, Help: d.help, ConstLabels: of}, d.labels())
	for _, value := range d.values {
		vec.WithLabelValues(value)
	}
	return vec
}

func (d *definition) one(of prometheus.Labels) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: d.name, Help: d.help, ConstLabels: of})
}

func (d *definition) histogram(of prometheus.Labels) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: d.name, Help: d.help, ConstLabels: of, Buckets: d.buckets})
}
