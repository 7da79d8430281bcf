package curator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
)

// Defaults of Config.
const (
	// DefaultWait bounds the wait for a leader.
	DefaultWait = 10 * time.Second
	// DefaultDrain bounds the wait for unary calls before leadership is given up.
	DefaultDrain = time.Second
	// DefaultGrace is how long the calls of an ended tenure may take to be answered.
	DefaultGrace = time.Second
	// DefaultShutdown bounds the wait for calls at the end of Run.
	DefaultShutdown = time.Second

	// The following limits can be raised; a node then uses correspondingly more memory.

	// DefaultMaxMessage bounds a message, in bytes; gRPC's own default.
	DefaultMaxMessage = 4 << 20
	// DefaultMaxMetadata bounds the metadata of a call, in bytes. gRPC's own default, 16 MiB, is
	// larger than the limit of a message, and metadata is held as long as the call.
	DefaultMaxMetadata = 64 << 10
	// DefaultMaxStreams bounds the calls of a connection. gRPC's own default is no limit; each call
	// costs one or two goroutines and some kilobytes.
	DefaultMaxStreams = 4096
	// DefaultMaxWaiting bounds the calls that wait for a leader, or a connection to it.
	DefaultMaxWaiting = 4096
	// DefaultMaxHeld bounds the messages that are held for these calls, in bytes.
	DefaultMaxHeld = 64 << 20
)

// Config configures what is served and where, and the elector. Elector, Listeners and Services are
// required. New copies it.
type Config struct {
	// Elector configures the node as a candidate. An empty Address means the address of the first of
	// Listeners that is not a Unix socket or, if all are, of the first one. Other nodes must be able
	// to dial it.
	Elector elector.Config
	// Listeners accept the connections of callers and other nodes, for example TLS connections over
	// TCP, and connections in plain text over a Unix socket. All calls are treated alike. Run closes
	// the listeners.
	Listeners []Listener

	// Services registers what the leader serves, anew for each tenure, so that no state of one
	// tenure is visible in another. It is called at the beginning of a tenure and should be quick,
	// because calls wait meanwhile. An error ends the tenure, and so does a registration that
	// cannot be served, also a later one. ctx and l end with the tenure.
	Services func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error
	// Background, if set, runs while this node leads, concurrently with the calls. When it returns,
	// with or without an error, leadership is given up. It must return when ctx ends. nil means to
	// lead until leadership is lost.
	Background func(ctx context.Context, l *elector.Leadership) error
	// Local, if set, registers services that every node answers itself in every state,
	// such as reflection. It is called once, by New. r lists what was registered, as
	// *grpc.Server does (GetServiceInfo).
	Local func(r grpc.ServiceRegistrar)

	// Reads, if set, registers services that this node may answer from its own copy of the data,
	// instead of the leader, for callers that allow it (AllowLocalRead). They are some of those of
	// Services, with the same names, and only methods that read (see Only). It is called once, by
	// New. Their handlers run in no tenure: they have no guard and no token, and their contexts end
	// only with the call. ReadAge must be set as well.
	Reads func(r grpc.ServiceRegistrar)
	// ReadAge returns the maximum age of the copy: everything that was written before that is in
	// it. It is called for each call that may be answered from the copy, before the handler; ctx is
	// the call's context (grpc.Method returns the method). If it returns an error or a negative
	// age, the age is unknown and the leader answers. It must be quick and safe for concurrent use,
	// and should use a clock that continues while the machine sleeps (lease.Boot).
	ReadAge func(ctx context.Context) (time.Duration, error)

	// Wait bounds how long a call waits for a leader while none is known, or while the known leader
	// cannot be connected to; an earlier deadline of the call ends the wait sooner. 0 means
	// DefaultWait. A leader that crashed remains known until its lease expires: if Wait is longer
	// than that, calls survive a failover. A call that need not wait succeeds however short Wait is.
	Wait time.Duration
	// Drain is how long a node that gives up leadership itself waits, still leading, for its unary
	// calls under way. 0 means DefaultDrain.
	Drain time.Duration
	// Grace is how long the calls of a tenure that has ended may take to be answered, by the handlers
	// of this node and over its connections to the last leader. 0 means DefaultGrace.
	Grace time.Duration
	// Shutdown is how long Run waits at its end, after leadership was given up, for calls that are
	// forwarded or wait, before it closes all connections. 0 means DefaultShutdown.
	Shutdown time.Duration

	// PeerCredentials returns the credentials of connections to a leader. They should accept only
	// that leader, whose certificate should name its node ID. crypto/tls accepts a wildcard
	// certificate for every name that it covers, so nodes should not have one. nil means plain
	// text, unless PeerOptions have credentials. If any listener has credentials, one of the two must
	// be set.
	PeerCredentials func(leader elector.Leader) credentials.TransportCredentials
	// PeerOptions are added to the options of connections to leaders. The size of a leader's
	// answers has no limit unless one is among these (grpc.MaxCallRecvMsgSize); an answer over it
	// ends the call as a broken connection does.
	PeerOptions []grpc.DialOption
	// VerifyHop, if set, checks whether a call that claims to be forwarded by a node does come from
	// that node. It is called for each such call to any service, local ones included, before
	// interceptors. ctx is the call's context, with the connection's credentials
	// (peer.FromContext), and node the ID that the call gives. An error refuses the call, with the
	// error's own status or PERMISSION_DENIED. It must be quick and safe for concurrent use. nil
	// means NodeCertificate on connections whose client has shown a verified certificate, which are
	// all connections with tls.RequireAndVerifyClientCert. On other connections nil means that
	// every hop is served and none is verified (see Forwarded). So set NodeCertificate with
	// tls.VerifyClientCertIfGiven; otherwise a client without a certificate is served as well.
	// NodeCertificate refuses every hop in plain text. Use it beside a Unix socket if nodes dial each
	// other with TLS.
	VerifyHop func(ctx context.Context, node string) error

	// MaxMessage bounds each message that this node receives from a caller or another node, in
	// bytes and without compression. It does not bound answers. 0 means DefaultMaxMessage.
	MaxMessage int
	// MaxMetadata bounds the metadata of a call, in bytes as HTTP/2 counts them, which adds 32 for
	// each value. In a forwarded call some hundred bytes are the curators' own. If the caller has
	// shown a certificate (see Caller), it is included, a third longer than its DER: one or two
	// kilobytes. 0 means DefaultMaxMetadata.
	MaxMetadata int
	// MaxStreams bounds the calls that are under way on one connection; further ones wait at the
	// sender. A follower forwards its calls on up to four connections, those of one caller on one
	// of them. Use Listeners to bound the number of connections. 0 means DefaultMaxStreams.
	MaxStreams int
	// MaxWaiting bounds the calls that wait at this node for a leader, or for a connection to it.
	// MaxHeld bounds the messages that are held for them, in bytes. Of either, one connection may
	// use as much as is left for the others. A call over one of these limits is answered with
	// RESOURCE_EXHAUSTED. 0 means DefaultMaxWaiting, DefaultMaxHeld.
	MaxWaiting, MaxHeld int

	// ServerOptions are added to the server's options, after the limits. Stream interceptors among
	// them are called around every call, at each node that the call comes to; they see messages
	// that are not decoded, and metadata without the hop (see Forwarded). They are not called for a
	// call whose hop is refused, except for one of grpc.StreamInterceptor or grpc.UnaryInterceptor:
	// gRPC calls it first, and it sees the call as a caller's. A codec and an unknown-service
	// handler have no effect, and grpc.Creds has none at listeners with Credentials.
	ServerOptions []grpc.ServerOption
	// Unary and Stream, if set, are called around the handlers of Services, at the leader, and
	// around those of Reads, and see decoded messages.
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor

	// Hooks are called for each call to an elected service.
	Hooks Hooks

	// Logger logs where calls go, and leaders that cannot be reached. It is also the logger of
	// Elector, unless Elector has its own. nil means no logging.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Services == nil:
		return c, invalid("Config.Services is nil")
	case (c.Reads == nil) != (c.ReadAge == nil):
		return c, invalid("Config.Reads and Config.ReadAge must be set together: a copy of unknown age is not read")
	case c.Wait < 0, c.Drain < 0, c.Grace < 0, c.Shutdown < 0:
		return c, invalid("Config.Wait %v, Drain %v, Grace %v or Shutdown %v is negative", c.Wait, c.Drain, c.Grace, c.Shutdown)
	}
	c.Listeners = slices.Clone(c.Listeners)
	if err := c.checkListeners(); err != nil {
		return c, err
	}
	for _, limit := range []struct {
		name   string
		is     *int
		normal int
	}{
		{"MaxMessage", &c.MaxMessage, DefaultMaxMessage},
		{"MaxMetadata", &c.MaxMetadata, DefaultMaxMetadata},
		{"MaxStreams", &c.MaxStreams, DefaultMaxStreams},
		{"MaxWaiting", &c.MaxWaiting, DefaultMaxWaiting},
		{"MaxHeld", &c.MaxHeld, DefaultMaxHeld},
	} {
		if *limit.is < 0 || *limit.is > math.MaxInt32 { // gRPC converts it to 32 bits
			return c, invalid("Config.%s %d is negative, or more than %d", limit.name, *limit.is, math.MaxInt32)
		}
		*limit.is = cmp.Or(*limit.is, limit.normal)
	}
	if c.Elector.Address == "" {
		address, err := c.reachable()
		if err != nil {
			return c, err
		}
		c.Elector.Address = address
	}
	c.Wait, c.Drain = cmp.Or(c.Wait, DefaultWait), cmp.Or(c.Drain, DefaultDrain)
	c.Grace, c.Shutdown = cmp.Or(c.Grace, DefaultGrace), cmp.Or(c.Shutdown, DefaultShutdown)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Elector.Logger == nil {
		c.Elector.Logger = c.Logger
	}
	return c, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{eldest.ErrInvalid}, args...)...)
}
