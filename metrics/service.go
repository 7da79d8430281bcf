package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest/curator"
)

// Service is the collector of the calls to one node of a service. It is made by NewService. All
// methods are safe for concurrent use, and none blocks.
type Service struct {
	set set

	mu   sync.Mutex
	node Loaded // nil before Attach
}

// NewService makes the collector of a node of the named election. All its values are 0 until its
// Hooks are called. For the name and for registries it has the same rules as New.
func NewService(election string) *Service { return &Service{set: newSet(election, serviceDefinitions)} }

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
		s.set.inc(&callsDef, way, code.String())
		s.set.observe(&tookDef, e.Took.Seconds(), way)
		if e.Hop {
			return // the other node counts the caller's side of the call
		}
		s.set.observe(&callWaitDef, e.Waited.Seconds())
		if e.Refusal != 0 {
			s.set.inc(&refusalsDef, e.Refusal.String())
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

// Describe implements prometheus.Collector.
func (s *Service) Describe(to chan<- *prometheus.Desc) { s.set.describe(to) }

// Collect implements prometheus.Collector.
func (s *Service) Collect(to chan<- prometheus.Metric) {
	s.set.collect(to)
	s.mu.Lock()
	node := s.node
	s.mu.Unlock()
	var now curator.Load
	if node != nil {
		now = node.Load()
	}
	s.set.number(to, &waitingDef, float64(now.Waiting))
	s.set.number(to, &heldDef, float64(now.Held))
	s.set.number(to, &flightDef, float64(now.Serving), served)
	s.set.number(to, &flightDef, float64(now.Forwarding), forwarded)
}
