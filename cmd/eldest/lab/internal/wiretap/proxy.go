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
	// must return quickly, and must not call the proxy. It is not called after Close has returned.
	Record func(Message)
}

// Proxy is a running proxy between clients and etcd, made by Start and ended by Close. All methods
// are safe for concurrent use.
type Proxy struct {
	members *members
	sink    func(Message)
	start   time.Time
	lis     net.Listener
	server  *grpc.Server
	// pumps are the loops of requests, which end shortly after their calls; served is the server's
	// own loop.
	pumps, served sync.WaitGroup

	mu                           sync.Mutex
	connections, nameless, calls int
	// cuts are the partitioned lanes, each with the calls that lost a message.
	cuts map[string]map[int]context.CancelCauseFunc
}

// errTorn ends the calls that lost a message while their lane was partitioned.
var errTorn = errors.New("wiretap: the lane was partitioned, and a message was lost")

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
	p := &Proxy{members: where, sink: cfg.Record, start: time.Now(), lis: lis, cuts: make(map[string]map[int]context.CancelCauseFunc)}
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

// Cut drops everything that a lane sends, or is sent, from now on. Its connections stay open.
func (p *Proxy) Cut(lane string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cuts[lane] == nil {
		p.cuts[lane] = make(map[int]context.CancelCauseFunc)
	}
}

// Mend ends a Cut. The calls that lost a message end as well.
func (p *Proxy) Mend(lane string) {
	p.mu.Lock()
	torn := p.cuts[lane]
	delete(p.cuts, lane)
	p.mu.Unlock()
	for _, cancel := range torn {
		cancel(errTorn)
	}
}

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

// record records a message.
func (p *Proxy) record(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(m)
}

// write is record for callers that hold p.mu.
func (p *Proxy) write(m Message) {
	m.At = time.Since(p.start)
	p.sink(m)
}

// pass records a message and reports whether to pass it on. A lost message, and all that follow it
// in its direction, are not passed on: then pass blocks until the call ends.
func (p *Proxy) pass(ctx context.Context, m Message, cancel context.CancelCauseFunc) bool {
	p.mu.Lock()
	torn, cut := p.cuts[m.Lane]
	m.Lost = cut
	if cut {
		torn[m.Call] = cancel
	}
	p.write(m)
	p.mu.Unlock()
	if cut {
		<-ctx.Done()
	}
	return !cut
}
