package page

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// DefaultListen is a free port of the loopback address.
const DefaultListen = "127.0.0.1:0"

// Config describes a server.
type Config struct {
	// Source is what is shown.
	Source feed.Source
	// Listener is where it is served. The server closes it.
	Listener net.Listener
	// Listen is the address of the listener as the user has named it: its host may be a name. It may be
	// empty.
	Listen string
}

// Server serves the page. Its methods may be called concurrently.
type Server struct {
	source feed.Source
	gate   gate
	// listener is closed when Serve or Close returns.
	listener net.Listener

	mu sync.Mutex
	// closing means that no further request is begun.
	closing bool
	// running are the requests that were begun.
	running sync.WaitGroup
}

// New serves nothing yet. The caller calls Serve or Close.
func New(cfg Config) (*Server, error) {
	address, err := netip.ParseAddrPort(cfg.Listener.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("page: not a TCP listener: %w", err), cfg.Listener.Close())
	}
	host, _, _ := net.SplitHostPort(cfg.Listen) // a name; the listener has the address of it
	return &Server{
		source: cfg.Source, listener: cfg.Listener,
		gate: gate{address: address, name: host, token: newToken()},
	}, nil
}

func newToken() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails: it ends the process instead
	return hex.EncodeToString(bits[:])
}

// Address returns the address to open, with the token.
func (s *Server) Address() string { return s.gate.url() }

// Loopback reports whether only this machine can reach the server.
func (s *Server) Loopback() bool { return s.gate.address.Addr().IsLoopback() }

// Close releases the address. It is for a server that does not serve; after Serve it does nothing.
func (s *Server) Close() error {
	if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// How long clients have for what they send, and for reading what they receive.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 10 * time.Second
	writeTimeout  = 10 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
)

// goodbye is how long answers that are being written may take when Serve ends.
const goodbye = 500 * time.Millisecond

// Serve serves until ctx ends, and then returns nil, or until the listener fails. Streams, and actions
// that have not ended, end with ctx. When it returns, no handler is running. It is called once.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.handler(ctx),
		ReadHeaderTimeout: headerTimeout, // the body has its own; the handlers, their own for writing
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // errors of clients
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.listener) }()
	var failure error
	select {
	case failure = <-ended:
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	if server.Shutdown(closing) != nil {
		_ = server.Close()
	}
	if failure == nil {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			failure = err
		}
	}
	s.drain()
	return failure
}

// begin counts a request, unless the server is closing.
func (s *Server) begin() (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, false
	}
	s.running.Add(1)
	return s.running.Done, true
}

// drain waits for all requests that were begun.
func (s *Server) drain() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.running.Wait()
}

// handler returns the handler of all requests. ctx is the server's: actions run to their end although
// the page that asked for them is closed, and end with the server.
func (s *Server) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { serveAsset(w, "index.html") })
	mux.HandleFunc("GET /assets/{name...}", func(w http.ResponseWriter, r *http.Request) { serveAsset(w, r.PathValue("name")) })
	// Browsers ask for it, and report on the console if there is none.
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.source.Info()) })
	mux.HandleFunc("GET /done", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.source.Done()) })
	mux.HandleFunc("GET /events", s.stream)
	mux.HandleFunc("POST /do", post(func(a feed.Action) error { return s.source.Do(ctx, a) }))
	mux.HandleFunc("POST /play", post(func(c feed.Scenario) error { return s.source.Play(ctx, c) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, ok := s.begin()
		if !ok {
			http.Error(w, "eldest lab has ended", http.StatusServiceUnavailable)
			return
		}
		defer done()
		protect(w.Header())
		if s.gate.pass(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}
