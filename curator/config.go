package curator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"reflect"
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
	// DefaultGrace is how long a handler may take to give its own answer.
	DefaultGrace = time.Second

	// The following limits can be raised; a node then uses so much more memory.

	// DefaultMaxMessage bounds a message, in bytes; gRPC's own default.
	DefaultMaxMessage = 4 << 20
	// DefaultMaxMetadata bounds the metadata of a call, in bytes. gRPC's own default, 16
	// MiB, is more than that of a message, and metadata is held as long as the call.
	DefaultMaxMetadata = 64 << 10
	// DefaultMaxStreams bounds the calls of a connection. gRPC's own default is none; a
	// goroutine or two and some kilobytes are spent on each.
	DefaultMaxStreams = 4096
	// DefaultMaxWaiting bounds the calls that wait for a leader, or a connection to it.
	DefaultMaxWaiting = 4096
	// DefaultMaxHeld bounds what they hold of messages meanwhile, in bytes.
	DefaultMaxHeld = 64 << 20
)

// Config says what is served and where, and configures the elector. Elector, Listener and
// Services are required. It is copied by New.
type Config struct {
	// Elector configures the node as a candidate. An empty Address means the listener's, which
	// then must be one that other nodes can dial.
	Elector elector.Config
	// Listener is where callers and other nodes connect to. Run closes it.
	Listener net.Listener

	// Services registers what the leader serves, afresh for each tenure, so that no
	// state of one tenure is seen in another. It is called at the beginning of a tenure
	// and should be quick: calls wait meanwhile. An error ends the tenure, and so does a
	// registration that cannot be served, also one that comes later. ctx and l end with
	// the tenure.
	Services func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error
	// Background, if set, runs while this node leads, beside the calls. When it returns,
	// with or without an error, leadership is given up. It must return when ctx ends.
	// nil means to lead until leadership is lost.
	Background func(ctx context.Context, l *elector.Leadership) error
	// Local, if set, registers services that every node answers itself in every state,
	// such as reflection. It is called once, by New. r lists what was registered, as
	// *grpc.Server does (GetServiceInfo).
	Local func(r grpc.ServiceRegistrar)

	// Reads, if set, registers services that this node answers from a copy of the data that it
	// has itself, instead of the leader, for callers that have allowed it (AllowLocalRead). They
	// are some of those of Services, with the same names, and only methods that read (see Only).
	// It is called once, by New. Their handlers run in no tenure: no guard, no token, and their
	// contexts end with the call only. ReadAge must be set as well.
	Reads func(r grpc.ServiceRegistrar)
	// ReadAge returns how old the copy is at most: it has all that was written before that. It
	// is called for each call that may be answered from the copy, before the handler is;
	// ctx is the call's (grpc.Method returns the method). With an error, or a negative age,
	// the age is unknown, and the leader answers. It must be quick, and safe for concurrent use,
	// and should use a clock that goes on while the machine sleeps (lease.Boot).
	ReadAge func(ctx context.Context) (time.Duration, error)

	// Wait bounds how long a call waits for a leader while none is known, or the known
	// one cannot be connected to; an earlier deadline of its own ends it sooner. 0 means
	// DefaultWait. A leader that died is known until its lease expires: where Wait is
	// longer than that, calls outlast a fail-over.
	Wait time.Duration
	// Grace is how long a handler whose tenure was lost may take to give its own answer;
	// how long a tenure that is given up of one's own accord is prolonged for the unary
	// calls that are under way; how long the connection to a leader outlasts its tenure
	// while calls are in flight there; and how long the server, at the end of Run, lets
	// calls finish. 0 means DefaultGrace.
	Grace time.Duration

	// ServerCredentials are the listener's. nil means plain text.
	ServerCredentials credentials.TransportCredentials
	// PeerCredentials returns the credentials of connections to a leader. They should
	// accept nobody but that leader: its node id is what its certificate is to say. crypto/tls
	// accepts a wildcard certificate for every name that it covers, so give nodes none. nil
	// means plain text, unless PeerOptions have credentials; with ServerCredentials
	// one of the two must be set.
	PeerCredentials func(leader elector.Leader) credentials.TransportCredentials
	// PeerOptions are added to those of connections to leaders. What a leader answers has no
	// limit unless one is among these (grpc.MaxCallRecvMsgSize); an answer over it ends the
	// call as a broken connection does.
	PeerOptions []grpc.DialOption
	// VerifyHop, if set, is asked of each call that says that a node has forwarded it, to
	// any service, local ones included, before interceptors are called: whether it does
	// come from that node. ctx is the call's, with the connection's credentials
	// (peer.FromContext), node the id that it gives. An error refuses the call, with the
	// error's own status or PERMISSION_DENIED. It must be quick, and safe for concurrent use.
	// nil means NodeCertificate on connections whose client has shown a certificate that
	// was verified, which are all connections with tls.RequireAndVerifyClientCert. On
	// other connections nil means that every hop is served and none is verified (see
	// Forwarded): with tls.VerifyClientCertIfGiven set NodeCertificate, or who shows no
	// certificate is served as well.
	VerifyHop func(ctx context.Context, node string) error

	// MaxMessage bounds each message that comes to this node from a caller or another
	// node, in bytes and without compression; answers are their senders' business. 0 means
	// DefaultMaxMessage.
	MaxMessage int
	// MaxMetadata bounds what comes beside the messages of a call, in bytes as HTTP/2
	// counts them: 32 more than there are for each value. Of a forwarded call some hundred
	// bytes are the curators' own, and where the caller has shown a certificate (see Caller)
	// that, a third longer than it is as DER: a kilobyte or two. 0 means DefaultMaxMetadata.
	MaxMetadata int
	// MaxStreams bounds the calls that are under way on one connection; further ones wait
	// where they come from. A follower forwards its calls on up to four connections, those of
	// one caller on one of them. The number of connections is for Listener to bound. 0 means
	// DefaultMaxStreams.
	MaxStreams int
	// MaxWaiting bounds the calls that wait at this node for a leader, or for a connection
	// to it, and MaxHeld what they hold of messages, in bytes. Of either one connection
	// may have as much as is left for the others. A call over one of them is answered
	// RESOURCE_EXHAUSTED. 0 means DefaultMaxWaiting, DefaultMaxHeld.
	MaxWaiting, MaxHeld int

	// ServerOptions are added to the server's, after the limits. Its stream interceptors are called around
	// every call, at each node that the call comes to, and see messages that are not
	// decoded and metadata without the hop (see Forwarded). A call whose hop is refused
	// reaches none of them, except one of grpc.StreamInterceptor or grpc.UnaryInterceptor,
	// which gRPC calls first, and which sees it as a caller's. A codec and an unknown-service
	// handler have no effect.
	ServerOptions []grpc.ServerOption
	// Unary and Stream, if set, are called around the handlers of Services, at the
	// leader, and around those of Reads, and see messages.
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor

	// Hooks are called for each call to an elected service.
	Hooks Hooks

	// Logger logs where calls go and leaders that cannot be reached. It is also the logger of
	// Elector, unless that has one. nil means no logging.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case isNil(c.Listener):
		return c, invalid("Config.Listener is nil")
	case c.Services == nil:
		return c, invalid("Config.Services is nil")
	case (c.Reads == nil) != (c.ReadAge == nil):
		return c, invalid("of Config.Reads and ReadAge there is only one: a copy is not read whose age nobody knows")
	case c.Wait < 0, c.Grace < 0:
		return c, invalid("Config.Wait %v or Grace %v is negative", c.Wait, c.Grace)
	}
	if c.ServerCredentials != nil && c.PeerCredentials == nil {
		if err := secured(c.PeerOptions); err != nil {
			return c, invalid("Config.ServerCredentials are set, and there are no PeerCredentials, nor any in PeerOptions: followers would call leaders in plain text (insecure.NewCredentials() says that this is meant): %v", err)
		}
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
		if *limit.is < 0 || *limit.is > math.MaxInt32 { // of which gRPC makes 32 bits
			return c, invalid("Config.%s %d is negative, or more than %d", limit.name, *limit.is, math.MaxInt32)
		}
		*limit.is = cmp.Or(*limit.is, limit.normal)
	}
	if c.Elector.Address == "" {
		address, err := reachable(c.Listener.Addr())
		if err != nil {
			return c, err
		}
		c.Elector.Address = address
	}
	c.Wait, c.Grace = cmp.Or(c.Wait, DefaultWait), cmp.Or(c.Grace, DefaultGrace)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Elector.Logger == nil {
		c.Elector.Logger = c.Logger
	}
	return c, nil
}

// reachable returns a listener's address as gRPC dials it.
func reachable(addr net.Addr) (string, error) {
	switch a := addr.(type) {
	case *net.TCPAddr:
		if a.IP.IsUnspecified() {
			return "", invalid("Config.Elector.Address is empty, and Config.Listener's, %v, is not one that others can dial", addr)
		}
	case *net.UnixAddr:
		if !filepath.IsAbs(a.Name) {
			return "", invalid("Config.Elector.Address is empty, and Config.Listener's, %q, is not an absolute path", a.Name)
		}
		return "unix://" + a.Name, nil
	}
	return addr.String(), nil
}

// isNil catches a nil pointer in an interface as well as no interface at all.
func isNil(l net.Listener) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{eldest.ErrInvalid}, args...)...)
}
