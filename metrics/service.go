package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest/curator"
)

// Service is the collector of the calls to one node of a service. It is made by NewService. All
// methods are safe for concurrent use, and none blocks.
type Service struct {
	// Metrics that are updated by the hook.
	calls, refusals *prometheus.CounterVec
	took            *prometheus.HistogramVec
	wait            prometheus.Histogram
	// Metrics that are computed at each scrape.
	waiting, held, flight *prometheus.Desc

	mu   sync.Mutex
	node Loaded // nil before Attach
}

// NewService makes the collector of a node of the named election. All its values are 0 until its
// Hooks are called. For the name and for registries it has the same rules as New.
func NewService(election string) *Service {
	of := prometheus.Labels{"election": strings.ToValidUTF8(election, "\ufffd")}
	return &Service{
		calls: callsDef.counters(of), refusals: refusalsDef.counters(of), took: tookDef.histograms(of), wait: callWaitDef.histogram(of),
		waiting: waitingDef.desc(of), held: heldDef.desc(of), flight: flightDef.desc(of),
	}
}

// Hooks returns the hooks that update the collector, for curator.Config.Hooks. They return at once,
// and may be called concurrently.
func (s *Service) Hooks() curator.Hooks {
	return curator.Hooks{Answered: func(e curator.CallEvent) {
		way := e.Way.String()
		if e.Hop {
			way = hop
		}
		code := e.Code
		if code > codes.Unauthenticated {
			code = codes.Unknown // otherwise a service's own codes would be an unlimited number of labels
		}
		s.calls.WithLabelValues(way, code.String()).Inc()
		s.took.WithLabelValues(way).Observe(e.Took.Seconds())
		if e.Hop {
			return // the other node counts the caller's side of the call
		}
		s.wait.Observe(e.Waited.Seconds())
		if e.Refusal != 0 {
			s.refusals.WithLabelValues(e.Refusal.String()).Inc()
		}
	}}
}

// Loaded has the load of a node: a *curator.Curator.
type Loaded interface{ Load() curator.Load }

// Attach makes the collector compute the gauges from a node's load, from now on.
func (s *Service) Attach(n Loaded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = n
}

// counting returns the parts that are collectors themselves.
func (s *Service) counting() []prometheus.Collector {
	return []prometheus.Collector{s.calls, s.took, s.wait, s.refusals}
}

// Describe implements prometheus.Collector.
func (s *Service) Describe(to chan<- *prometheus.Desc) {
	for _, c := range s.counting() {
		c.Describe(to)
	}
	for _, d := range []*prometheus.Desc{s.waiting, s.held, s.flight} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Service) Collect(to chan<- prometheus.Metric) {
	for _, c := range s.counting() {
		c.Collect(to)
	}
	s.mu.Lock()
	node := s.node
	s.mu.Unlock()
	var now curator.Load
	if node != nil {
		now = node.Load()
	}
	number := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	number(s.waiting, float64(now.Waiting))
	number(s.held, float64(now.Held))
	number(s.flight, float64(now.Serving), served)
	number(s.flight, float64(now.Forwarding), forwarded)
}
