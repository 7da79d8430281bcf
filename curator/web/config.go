package web

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/elector"
)

// Defaults of Config.
const (
	// DefaultWait bounds the wait for a leader.
	DefaultWait = 10 * time.Second
	// DefaultGrace is how long requests may take to end by themselves.
	DefaultGrace = time.Second
	// DefaultMaxWaiting bounds the requests that wait.
	DefaultMaxWaiting = 1024
)

// Node is this node in its election; *elector.Elector and *curator.Curator are Nodes.
type Node interface {
	// Watch returns a watch of the statuses.
	Watch() *elector.Watch
}

// Config configures which node a Front is for, and how it reaches leaders. Node, Election and
// NodeID are required. New copies it.
type Config struct {
	// Node is followed by Front.Run.
	Node Node
	// Election and NodeID are those of Node: answers name the election, and a forwarded
	// request names the node.
	Election, NodeID string

	// URL returns where a leader serves HTTP: scheme, host and port, and optionally a path that is
	// put before the path of requests. Front.Run calls it for each leader that this node follows,
	// and it must be quick. While it returns an error nothing is forwarded. nil means "http://" and
	// the leader's Address.
	URL func(leader elector.Leader) (*url.URL, error)
	// Transport sends requests to leaders. It must obey the request's context and must not send a
	// request a second time; an *http.Transport is correct in both (see the package documentation).
	// A Transport that does not report connections as *http.Transport does (package httptrace) is
	// safe, but then a leader that cannot be reached is an error at once. nil means the Front's own
	// transport, without a proxy and without compression.
	Transport http.RoundTripper

	// Wait bounds how long a request waits for a leader to be known and for a connection to
	// it. 0 means DefaultWait. Nothing bounds how long a request takes after that.
	Wait time.Duration
	// Grace is how long running requests may take to end by themselves: before the end of a tenure
	// that is given up voluntarily, after the end of a tenure, and after another leader is known
	// than the one that they were forwarded to. 0 means DefaultGrace.
	Grace time.Duration
	// MaxWaiting bounds the requests that wait for a leader or a connection (see Wait); further
	// ones are refused. Their bodies are not read. 0 means DefaultMaxWaiting.
	MaxWaiting int

	// VerifyHop, if set, is called with each request that claims that a node has forwarded it. It
	// must return an error, which refuses the request, unless the request comes from that node. It
	// must be quick and safe for concurrent use. nil means NodeCertificate for connections whose
	// client has shown a verified certificate; on other connections every hop is served, and
	// Forwarded does not report it.
	VerifyHop func(r *http.Request, node string) error

	// Logger receives changes of the route, and requests that could not be forwarded. nil means no
	// logging.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Node == nil, c.Node == Node((*elector.Elector)(nil)), c.Node == Node((*curator.Curator)(nil)):
		return c, invalid("Config.Node is nil")
	case c.Election == "", c.NodeID == "":
		return c, invalid("Config.Election %q or NodeID %q is empty", c.Election, c.NodeID)
	case c.Wait < 0, c.Grace < 0, c.MaxWaiting < 0:
		return c, invalid("Config.Wait %v, Grace %v or MaxWaiting %d is negative", c.Wait, c.Grace, c.MaxWaiting)
	}
	if c.URL == nil {
		c.URL = plainURL
	}
	c.Wait, c.Grace = cmp.Or(c.Wait, DefaultWait), cmp.Or(c.Grace, DefaultGrace)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, DefaultMaxWaiting)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// plainURL is the default of Config.URL.
func plainURL(leader elector.Leader) (*url.URL, error) {
	if leader.Address == "" {
		return nil, fmt.Errorf("leader %+q has no address", leader.NodeID)
	}
	return &url.URL{Scheme: "http", Host: leader.Address}, nil
}

// newTransport is the default of Config.Transport. It uses no proxy, because leaders are named by
// address, and leaves the encoding of bodies to callers and handlers. It closes idle connections
// before servers usually do: a request that is sent while the server closes the connection is lost.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 30 * time.Second,
		ExpectContinueTimeout: time.Second, DisableCompression: true,
	}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{eldest.ErrInvalid}, args...)...)
}
