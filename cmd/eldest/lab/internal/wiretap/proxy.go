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

// Config says what is tapped. Endpoints and Record are required.
type Config struct {
	// Endpoints are etcd's client addresses, as its client takes them.
	Endpoints []string
	// TLS is for https endpoints, and for all that have no scheme; nil is the system's
	// roots for the former, and no TLS for the latter.
	TLS *tls.Config
	// Record is called with each message, one after another, before it is passed on: it
	// must be quick, and must not call the proxy. It is not called after Close has
	// returned.
	Record func(Message)
}

// Proxy is running between clients and etcd. Made by Start, ended by Close. All methods are
// safe for concurrent use.
type Proxy struct {
	members *members
	sink    func(Message)
	start   time.Time
	lis     net.Listener
	server  *grpc.Server
	// pumps are the loops of requests, which end a moment after their calls do; served is
	// the server's own loop.
	pumps, served sync.WaitGroup

	mu                           sync.Mutex
	connections, nameless, calls int
	// cuts are the lanes that are cut off, each with the calls that lost something.
	cuts map[string]map[int]context.CancelCauseFunc
}

// errTorn ends the calls that lost something when their lane was cut off.
var errTorn = errors.New("wiretap: the connection was cut off, and something was lost")

// Start listens on a free port of 127.0.0.1. It does not ask etcd anything; the first call
// finds out whether it is there. The caller must Close the proxy.
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
		// Whatever etcd would tolerate, and more.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	p.served.Go(func() { _ = p.server.Serve(lis) })
	return p, nil
}

// Endpoint is what clients dial: host:port, without TLS.
func (p *Proxy) Endpoint() string { return p.lis.Addr().String() }

// Note records what somebody beside the wire says; lane may be "" for nobody's.
func (p *Proxy) Note(lane, text string) { p.record(Message{Kind: Note, Lane: lane, Text: text}) }

// Cut has everything vanish that a lane sends, or is sent, from now on. Its connections stay.
func (p *Proxy) Cut(lane string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cuts[lane] == nil {
		p.cuts[lane] = make(map[int]context.CancelCauseFunc)
	}
}

// Mend ends a cut. The calls that lost something end as well.
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

// next numbers a call.
func (p *Proxy) next() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return p.calls
}

// record writes a message down.
func (p *Proxy) record(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(m)
}

// write is record for those who hold p.mu.
func (p *Proxy) write(m Message) {
	m.At = time.Since(p.start)
	p.sink(m)
}

// pass records a message and reports whether it may go on. One that is lost, and all that
// follow it in its direction, go nowhere: then pass blocks until the call ends.
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
