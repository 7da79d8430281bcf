package face

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/metrics"
	"github.com/eldest-io/eldest/observe"
)

// Face serves one participant in one election. Made by Serve, ended by Close. All methods
// are safe for concurrent use, and of a nil *Face, that of a command without --http, they
// do nothing.
type Face struct {
	name    string
	numbers *metrics.Election
	calls   *metrics.Service
	health  *health
	server  *http.Server
	address string
	served  chan struct{}
	// shown is for what else /metrics is to show.
	shown prometheus.Registerer

	mu       sync.Mutex
	closed   bool
	observer *observe.Observer
	leader   http.Handler
}

// Grace is how long a participant may be without a living session before it counts as in
// trouble: enough for a new session after a lost one, back-off included.
func Grace(ttl time.Duration) time.Duration { return max(2*ttl, 10*time.Second) }

// gathering bounds the requests for /metrics that are carried out at a time: those whose
// connection was closed go on until they want to answer. It is more than there are
// connections, so that such a request does not cost the next one its answer.
const gathering = 2 * limit

// Serve serves on a listener, which it closes in the end.
func Serve(l net.Listener, election string, grace time.Duration) *Face {
	f := &Face{
		name: election, numbers: metrics.New(election), calls: metrics.NewService(election), health: newHealth(election, grace),
		address: l.Addr().String(), served: make(chan struct{}),
	}
	f.leader = &candidacy{face: f}
	registry := prometheus.NewRegistry()
	registry.MustRegister(f.numbers, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f.shown = registry
	mux := http.NewServeMux()
	mux.Handle("/{$}", reading(http.HandlerFunc(f.serveContents)))
	mux.Handle("/metrics", reading(promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: gathering})))
	mux.Handle("/healthz", reading(f.health))
	mux.Handle("/leader", reading(http.HandlerFunc(f.serveLeader)))
	open := connections{open: make(map[net.Conn]usage)}
	f.server = &http.Server{
		// What clients do wrong is theirs, and the command's lines are for programs.
		ErrorLog: log.New(io.Discard, "", 0),
		Handler:  mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ConnState: open.track,
	}
	go func() {
		defer close(f.served)
		_ = f.server.Serve(l) // until Close
	}()
	return f
}

// Address is where the face is served, HOST:PORT.
func (f *Face) Address() string {
	if f == nil {
		return ""
	}
	return f.address
}

// Hooks returns what feeds the face: for the session and the candidate, or for an elector.
// They return at once, so they belong first into a tee.
func (f *Face) Hooks() hooks.Set {
	if f == nil {
		return hooks.Set{}
	}
	return hooks.Tee(f.numbers.Hooks(), hooks.Set{Session: f.health.hooks()})
}

// Candidate shows a candidate. value is what it says of itself.
func (f *Face) Candidate(s *lease.Session, c *election.Candidate, value string) {
	if f == nil {
		return
	}
	f.health.use(s)
	f.numbers.AttachCandidate(s, c)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader = &candidacy{face: f, candidate: c, value: value}
}

// Calls returns what feeds the numbers of calls, for a node of a service. They are shown from
// Node on.
func (f *Face) Calls() curator.Hooks {
	if f == nil {
		return curator.Hooks{}
	}
	return f.calls.Hooks()
}

// Node is a node of a service, such as a *curator.Curator.
type Node interface {
	metrics.Node
	metrics.Loaded
}

// Node shows a node of a service, whose status and load are known; leader answers at /leader.
// It is called once.
func (f *Face) Node(n Node, leader http.Handler) {
	if f == nil {
		return
	}
	f.numbers.Attach(n)
	f.calls.Attach(n)
	f.shown.MustRegister(f.calls)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader = leader
}

// Observe has the face know who leads and how many stand, which costs one watch. The error
// wraps eldest.ErrInvalid.
func (f *Face) Observe(client *clientv3.Client) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.observer != nil || f.closed {
		return nil
	}
	o, err := observe.New(observe.Config{Election: f.name, KV: client, Watcher: client, Hooks: f.Hooks().Observer})
	if err == nil {
		f.observer = o
	}
	return err
}

// Rest says that there is no session for a while on purpose, and why: until the next one,
// /healthz gives that as the reason.
func (f *Face) Rest(why string, pause time.Duration) {
	if f != nil {
		f.health.rest(why, pause)
	}
}

// serveContents lists what there is, for who tries the address.
func (f *Face) serveContents(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, `a participant in the election %q
/metrics  numbers, for Prometheus
/healthz  200 while it can do its work, else 503, with the reason
/leader   200 while it leads, else 503, with who does
`, f.name)
}

// Close ends the observer and the server, and what is answered within half a second is
// answered to the end. It waits for all goroutines.
func (f *Face) Close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.closed = true
	o := f.observer
	f.mu.Unlock()
	if o != nil {
		o.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if f.server.Shutdown(ctx) != nil {
		_ = f.server.Close()
	}
	<-f.served
}

// reading lets nobody but readers in, and has no answer kept: each is for its moment.
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
