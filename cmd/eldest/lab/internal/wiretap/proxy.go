package wiretap

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// Config configures a proxy. Endpoints and Record are required.
type Config struct {
	// Endpoints are etcd's client addresses, in any form that its client accepts.
	Endpoints []string
	// TLS is for https endpoints, and for all that have no scheme; nil means the system's roots for
	// the former, and no TLS for the latter.
	TLS *tls.Config
	// Record is called with each message, one after another, before the message is passed on: it
	// must return quickly, and must not call the proxy. It is not called after Close has returned. If
	// it sets Lost of a request or an answer, neither that message is passed on nor any that follows
	// it in its direction, and the call stays open, as on a host that is partitioned.
	Record func(*Message)
	// Gate, if not nil, is called with each request, answer and end of a call, after Record and
	// before it is passed on. It may block until ctx, the call's, ends: until then the other side
	// gets nothing. If it returns false, the message is lost and its call ends with Unavailable, like
	// one whose connection breaks. The calls for one direction of a call of etcd's API come one after
	// another, in the order of the messages; all others may be concurrent. The messages of a direction
	// that come while Gate blocks are recorded at once, and Gate is called with them later, also if
	// the call of etcd's API has ended: then they are lost, whatever it returns. Gate may call the
	// proxy, except Close. It is not called with a message whose Lost is set.
	Gate func(ctx context.Context, m Message) (pass bool)
}

// Proxy is a running proxy between clients and etcd, made by Start and ended by Close. All methods
// are safe for concurrent use.
type Proxy struct {
	members *members
	sink    func(*Message)
	gate    func(context.Context, Message) bool
	start   time.Time
	lis     net.Listener
	server  *grpc.Server
	// pumps are the loops that receive and pass on messages, and end with their calls or shortly
	// after; served is the server's own loop.
	pumps, served sync.WaitGroup

	mu                           sync.Mutex
	connections, nameless, calls int
	messages                     int64
}

// errDropped ends the calls that lost a message at the gate.
var errDropped = errors.New("wiretap: a message was dropped")

// Start listens on a free port of 127.0.0.1. It sends nothing to etcd; the first call shows whether
// etcd is available. The caller must Close the proxy.
func Start(cfg Config) (*Proxy, error) {
	where, err := newMembers(cfg.Endpoints, cfg.TLS)
	if err != nil {
		return nil, err
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{members: where, sink: cfg.Record, gate: cfg.Gate, start: time.Now(), lis: lis}
	p.server = grpc.NewServer(
		grpc.ForceServerCodecV2(rawframe.Codec{}), grpc.UnknownServiceHandler(p.handle), grpc.StatsHandler(p),
		grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32), grpc.WaitForHandlers(true),
		// More than etcd itself allows.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	p.served.Go(func() { _ = p.server.Serve(lis) })
	return p, nil
}

// Endpoint returns the address that clients dial: host:port, without TLS.
func (p *Proxy) Endpoint() string { return p.lis.Addr().String() }

// Note records a remark; lane may be "" for one about no lane.
func (p *Proxy) Note(lane, text string) { p.record(Message{Kind: Note, Lane: lane, Text: text}) }

// Close ends all calls and connections and waits for them.
func (p *Proxy) Close() {
	p.server.Stop()
	p.served.Wait()
	p.pumps.Wait()
}

// next returns the number of the next call.
func (p *Proxy) next() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return p.calls
}

// record records a message, and returns it as it was recorded.
func (p *Proxy) record(m Message) Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages++
	m.Number, m.At = p.messages, time.Since(p.start)
	p.sink(&m)
	return m
}

// admit asks the gate whether to pass a message on, and ends the call if not.
func (p *Proxy) admit(ctx context.Context, m Message, cancel context.CancelCauseFunc) bool {
	if p.gate == nil || p.gate(ctx, m) {
		return true
	}
	cancel(errDropped)
	return false
}
