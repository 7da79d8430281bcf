package curator

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/retry"
)

// front is what callers meet: one gRPC server, open in every state. What this node
// answers itself is registered with it; every other call comes to handle, as frames, and
// goes where the route says.
type front struct {
	server     *grpc.Server
	local      *local
	router     *router
	dispatcher *dispatcher
	forwarder  *forwarder

	election, node string
	wait           time.Duration

	// crew are the goroutines that outlive a call or belong to none: those that receive
	// from callers whose calls are over, and the heartbeats.
	crew sync.WaitGroup
}

// newFront makes a front that routes calls nowhere. cfg has its defaults.
func newFront(cfg Config, beat heartbeat) *front {
	f := &front{election: cfg.Elector.Election, node: cfg.Elector.NodeID, wait: cfg.Wait}
	dial := dialer(cfg)
	f.router = newRouter(func(l elector.Leader) *peer {
		return &peer{leader: l, dial: dial, beat: func(l *link) { f.crew.Go(func() { beat.watch(l) }) }}
	}, cfg.Grace)
	f.dispatcher = &dispatcher{
		election: f.election, node: f.node, grace: cfg.Grace, unary: cfg.Unary, stream: cfg.Stream,
	}
	f.forwarder = &forwarder{election: f.election, node: f.node, logger: cfg.Logger, pumps: &f.crew}
	options := []grpc.ServerOption{
		// Or else the other nodes' pings would end their connections.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingLimit, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
	}
	if cfg.ServerCredentials != nil {
		options = append(options, grpc.Creds(cfg.ServerCredentials))
	}
	options = append(options, cfg.limits()...)
	options = append(options, entrance{cfg.VerifyHop}.options()...)
	options = append(options, cfg.ServerOptions...)
	options = append(options, grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(f.handle))
	f.server = grpc.NewServer(options...)
	f.local = &local{server: f.server, names: make(map[string]bool)}
	return f
}

// handle is called by gRPC for each call to a service that is not local. It blocks until
// the call is answered.
func (f *front) handle(_ any, caller grpc.ServerStream) error {
	ctx := caller.Context()
	name, _ := grpc.MethodFromServerStream(caller)
	if service, method := split(name); f.local.names[service] {
		return status.Errorf(codes.Unimplemented, "unknown method %v for service %v", method, service)
	}
	h := arrived(ctx).hop
	if h.token > 0 {
		caller.SetTrailer(h.served())
	}
	stream := &pushback{ServerStream: caller}
	defer stream.drop()
	until := time.Now().Add(f.wait)
	for attempt := 0; ; attempt++ {
		to, what, err := f.router.next(ctx, h, until)
		switch {
		case ctx.Err() != nil:
			return status.FromContextError(ctx.Err()).Err()
		case err != nil && h.token > 0:
			return f.unrouted(h, to.refusal(h, f.node))
		case err != nil:
			return f.unrouted(h, fmt.Errorf("no leader is known after %v: %w", f.wait, to.why()))
		case what == refuse:
			return f.unrouted(h, to.refusal(h, f.node))
		case what == serve:
			err = f.serve(stream, to.tenure, name, h)
		default:
			err = f.forward(stream, to.peer, name, until)
		}
		// Whoever was too late for a tenure, or did not get to the leader, has not been
		// anywhere yet: there is another route now, or will be if the leader is dead.
		var unsent *unsentError
		switch {
		case errors.Is(err, errNotBegun), errors.Is(err, errHungUp):
		case !errors.As(err, &unsent):
			return err
		case !f.router.pause(ctx, to, lookAgain(attempt), until):
			return unsent.error
		}
	}
}

// lookAgain is how long a call waits for another route, or for the leader to be there
// again, before it is tried once more.
var lookAgain = retry.Jittered(50*time.Millisecond, 500*time.Millisecond)

// serve runs the call here, as the leader.
func (f *front) serve(stream *pushback, t *tenure, name string, h hop) error {
	m, ok := t.methods[name]
	if !ok {
		service, method := split(name)
		return status.Errorf(codes.Unimplemented, "unknown method %v for service %v", method, service)
	}
	if h.token > 0 && m.unary != nil {
		stream.SetTrailer(metadata.Pairs(unaryKey, ""))
	}
	return f.dispatcher.dispatch(stream, t, m)
}

// forward relays the call to the leader.
func (f *front) forward(stream *pushback, p *peer, name string, until time.Time) error {
	l, err := p.take()
	switch {
	case errors.Is(err, errHungUp):
		return err
	case err != nil:
		return f.unrouted(hop{token: p.leader.Token}, fmt.Errorf("the leader's address %q cannot be dialled: %w", p.leader.Address, err))
	}
	defer l.done()
	return relay{forwarder: f.forwarder, name: name, caller: stream, leader: p, link: l, until: until}.forward()
}

// unrouted is the answer to a call that went nowhere.
func (f *front) unrouted(h hop, why error) error {
	return refusal{election: f.election, token: h.token, untouched: true, why: why.Error()}.err()
}

// split takes the full name of a method apart.
func split(name string) (service, method string) {
	name = strings.TrimPrefix(name, "/")
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		return name[:at], name[at+1:]
	}
	return "", name
}
