package httpstatus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/metrics"
	"github.com/eldest-io/eldest/observe"
)

// Status is that of one participant in one election. New makes it, Close ends it. It is kept whether
// it is served or not. All methods are safe for concurrent use.
type Status struct {
	election string
	numbers  *metrics.Election
	calls    *metrics.Service
	health   *health
	registry *prometheus.Registry

	mu       sync.Mutex
	closed   bool
	server   *http.Server  // nil: it is not served
	served   chan struct{} // closed when the server has ended
	observer *observe.Observer
	leader   http.Handler // answers at /leader
}

// New returns the status of a participant that has done nothing yet.
func New(election string, grace time.Duration) *Status {
	s := &Status{
		election: election, numbers: metrics.New(election), calls: metrics.NewService(election), health: newHealth(election, grace),
		registry: prometheus.NewRegistry(),
	}
	s.registry.MustRegister(s.numbers)
	s.leader = s.candidacy(nil, "")
	return s
}

// Grace is how long a participant may be without a living session before it counts as in
// trouble: enough for a new session after a lost one, back-off included.
func Grace(ttl time.Duration) time.Duration { return max(2*ttl, 10*time.Second) }

// ErrAddress is wrapped by Listen's errors.
var ErrAddress = errors.New("want PORT or HOST:PORT, as in 9301 or 127.0.0.1:9301")

// Listen listens on an address: "HOST:PORT", or "PORT" or ":PORT" for the loopback address alone;
// port 0 is a free one. The error wraps ErrAddress if it is no address, and names the reason if it
// cannot be listened on.
func Listen(address string) (net.Listener, error) {
	host, port := "127.0.0.1", address
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return nil, ErrAddress
		}
		if host == "" {
			host = "127.0.0.1"
		}
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return nil, fmt.Errorf("%q is no port; %w", port, ErrAddress)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("%w; give another one; port 0 is a free one", err)
	}
	return l, nil
}

// gathering bounds the requests for /metrics that are carried out at a time. It is more than the
// number of connections, because a request whose connection was closed goes on until it answers.
const gathering = 2 * limit

// Serve begins to serve on a listener, which Close closes. It is called once at most.
func (s *Status) Serve(l net.Listener) {
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	for path, handler := range map[string]http.Handler{
		"/{$}":     http.HandlerFunc(s.serveContents),
		"/metrics": promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: gathering}),
		"/healthz": s.health,
		"/leader":  http.HandlerFunc(s.serveLeader),
	} {
		mux.Handle(path, reading(handler))
	}
	open := connections{open: make(map[net.Conn]usage)}
	server, served := &http.Server{
		// Errors of clients are not logged, because programs read the output of the command.
		ErrorLog: log.New(io.Discard, "", 0),
		Handler:  mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ConnState: open.track,
	}, make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server, s.served = server, served
	go func() {
		defer close(served)
		_ = server.Serve(l) // until Close
	}()
}

// Hooks returns the hooks that update the status: for the session and the candidate, or for an
// elector. They return at once.
func (s *Status) Hooks() hooks.Set {
	return hooks.Tee(s.numbers.Hooks(), hooks.Set{Session: s.health.hooks()})
}

// Candidate shows a candidate. value is what it publishes about itself.
func (s *Status) Candidate(session *lease.Session, c *election.Candidate, value string) {
	s.health.use(session)
	s.numbers.AttachCandidate(session, c)
	s.show(s.candidacy(c, value))
}

// Calls returns the hooks that count the calls of a node of a service. The numbers are shown once
// Node is called.
func (s *Status) Calls() curator.Hooks { return s.calls.Hooks() }

// Node is a node of a service, such as a *curator.Curator.
type Node interface {
	metrics.Node
	metrics.Loaded
}

// Node shows a node of a service, with its status and load; leader answers at /leader. It is called
// once.
func (s *Status) Node(n Node, leader http.Handler) {
	s.numbers.Attach(n)
	s.calls.Attach(n)
	s.registry.MustRegister(s.calls)
	s.show(leader)
}

func (s *Status) show(leader http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leader = leader
}

// Observe makes the status show who leads and how many candidates are queued, if it is served. That
// costs one watch. The error wraps eldest.ErrInvalid.
func (s *Status) Observe(client *clientv3.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil || s.observer != nil || s.closed {
		return nil
	}
	o, err := observe.New(observe.Config{Election: s.election, KV: client, Watcher: client, Options: observe.Options{Hooks: s.numbers.Hooks().Observer}})
	if err == nil {
		s.observer = o
	}
	return err
}

// Rest records that there is no session for a while on purpose, and why: until the next one, /healthz
// gives that as the reason.
func (s *Status) Rest(why string, pause time.Duration) { s.health.rest(why, pause) }

// Close ends the observer and the server. Requests that are answered within half a second are
// completed; the connections of others are closed, and it does not wait until their handlers return.
func (s *Status) Close() {
	s.mu.Lock()
	s.closed = true
	observer, server := s.observer, s.server
	s.mu.Unlock()
	if observer != nil {
		observer.Close()
	}
	if server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
	<-s.served
}

// reading refuses methods other than GET and HEAD, and forbids caching: an answer is only valid now.
func reading(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

// serveContents lists the paths.
func (s *Status) serveContents(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, `a participant in the election %q
/metrics  numbers, for Prometheus
/healthz  200 while it can do its work, else 503, with the reason
/leader   200 while it leads, else 503, with the leader
`, s.election)
}

func (s *Status) serveLeader(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	leader := s.leader
	s.mu.Unlock()
	leader.ServeHTTP(w, r)
}

// leaderAnswer is the body of an answer at /leader: that of a curator's role handler.
type leaderAnswer struct {
	Role string `json:"role"`
	// Node is what this candidate publishes about itself.
	Node string `json:"node"`
	// Leader is what the leader publishes about itself, Address where it accepts requests, if it
	// publishes that, and Token its tenure. Empty and 0 while no leader is known.
	Leader  string `json:"leader"`
	Address string `json:"address"`
	Token   int64  `json:"token"`
}

// candidacy answers at /leader for a candidate; before there is one, the role is unknown.
func (s *Status) candidacy(c *election.Candidate, value string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a := leaderAnswer{Role: "unknown", Node: value}
		var now election.Status
		if c != nil {
			now = c.Status()
		}
		if now.Leading {
			a.Role, a.Leader, a.Token = "leading", value, int64(now.Token)
			answer(w, http.StatusOK, a)
			return
		}
		s.mu.Lock()
		observer := s.observer
		s.mu.Unlock()
		if now.Token != 0 && observer != nil {
			// A follower follows another candidate, and not itself while its win is not proven yet.
			if state := observer.State(); state.Kind == eldest.Led && state.Leader.Token != now.Token {
				a.Role, a.Token = "following", int64(state.Leader.Token)
				a.Leader, a.Address = whoIs(state.Leader.Value)
			}
		}
		answer(w, http.StatusServiceUnavailable, a)
	})
}

// whoIs decodes a leader's value: that of a node of a service, or any other.
func whoIs(value []byte) (name, address string) {
	if node, err := (identity.Protobuf{}).Decode(value); err == nil && node.NodeID != "" && node.TTL > 0 {
		return node.NodeID, node.Address
	}
	return string(value), ""
}
