package curator

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/rawframe"
	"github.com/eldest-io/eldest/internal/retry"
)

// front is what callers meet: one gRPC server, open in every state. What this node
// answers itself is registered with it; every other call comes to handle, as frames, and
// goes where the route says.
type front struct {
	server     *grpc.Server
	local      *local
	router     *router
	lobby      *lobby
	dispatcher *dispatcher
	reads      reads

	election, node string
	wait           time.Duration
	// lookAgain is how long a call waits for another route, or for the leader to be there
	// again, before it is tried once more.
	lookAgain retry.Backoff
	logger    *slog.Logger

	hooks   Hooks
	traffic traffic

	// crew are the goroutines that outlive a call or belong to none: those that receive
	// from callers whose calls are over, the heartbeats, and those that close connections.
	crew sync.WaitGroup
}

// newFront makes a front that routes calls nowhere. cfg has its defaults.
func newFront(cfg Config, beat heartbeat) *front {
	f := &front{election: cfg.Elector.Election, node: cfg.Elector.NodeID, wait: cfg.Wait, logger: cfg.Logger, hooks: cfg.Hooks}
	f.lookAgain = retry.Jittered(50*time.Millisecond, 500*time.Millisecond)
	f.lobby = newLobby(cfg.MaxWaiting, cfg.MaxHeld)
	dial := dialer(cfg, &f.crew)
	tend := func(p *peer, pulse *link) {
		f.crew.Go(func() { beat.watch(p, pulse) })
		f.crew.Go(func() { beat.heed(pulse, func(serves bool) { f.router.serves(p, serves) }) })
	}
	f.router = newRouter(func(l elector.Leader) *peer { return &peer{leader: l, dial: dial, tend: tend} }, cfg.Grace)
	f.dispatcher = &dispatcher{
		election: f.election, node: f.node, grace: cfg.Grace, unary: cfg.Unary, stream: cfg.Stream,
	}
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
	options = append(options, grpc.ForceServerCodecV2(rawframe.Codec{}), grpc.UnknownServiceHandler(f.handle))
	f.server = grpc.NewServer(options...)
	f.local = newLocal(f.server)
	return f
}

// visit is a call to an elected service, on its way through this node.
type visit struct {
	*front
	name     string
	hop      hop
	caller   *replay
	patience patience
	progress *progress
	// last is what the last attempt has met, if the call has not begun there.
	last error
}

// handle is called by gRPC for each call to a service that is not local. It blocks until
// the call is answered.
func (f *front) handle(_ any, stream grpc.ServerStream) (answer error) {
	name, _ := grpc.MethodFromServerStream(stream)
	if service, method := split(name); f.local.names[service] {
		return status.Errorf(codes.Unimplemented, "unknown method %v for service %v", method, service)
	}
	h := arrived(stream.Context()).hop
	v := visit{
		front: f, name: name, hop: h, patience: patience{time.Now().Add(f.wait)},
		caller: &replay{ServerStream: stream, lobby: f.lobby, from: callerOf(stream.Context()), hop: h.token > 0},
	}
	if v.hop.token > 0 {
		stream.SetTrailer(v.hop.served())
	}
	if done, err := f.read(stream, name); done {
		return err
	}
	answer = errUnanswered
	v.progress = f.traffic.begin(name, v.hop, f.hooks)
	defer v.progress.end(stream, &answer)
	defer v.caller.drop()
	return v.answer()
}

// answer tries one route after the other until the call is answered. A call that has not
// begun at one, because it was too late for a tenure or did not get to the leader, has not been
// anywhere yet: there is another route now, or will be if the leader is dead.
func (v *visit) answer() error {
	for attempt := 0; ; attempt++ {
		to, err := v.attempt()
		var unsent *unsentError
		switch {
		case errors.Is(err, errNotBegun), errors.Is(err, errHungUp):
		case !errors.As(err, &unsent):
			return err
		default:
			v.last = unsent.error
			v.progress.enter(stageWaiting)
			if more, err := v.pause(to, v.lookAgain(attempt)); err != nil || !more {
				return cmp.Or(err, v.last)
			}
		}
	}
}

// attempt finds a route for the call and takes it.
func (v *visit) attempt() (*route, error) {
	to, what, err := v.route()
	if err != nil {
		v.progress.missing = RefusalNoLeader
	}
	switch ctx := v.caller.Context(); {
	case ctx.Err() != nil:
		return to, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, errNoRoom), v.caller.crowded():
		return to, v.crowded()
	case what == routing.Refuse && to.over:
		return to, v.unrouted(v.hop.token, RefusalStopping, to.reason)
	case err != nil && v.hop.token > 0, what == routing.Refuse:
		return to, v.unrouted(v.hop.token, RefusalWrongNode, to.refusal(v.hop, v.node))
	case err != nil && v.last != nil:
		return to, v.last
	case err != nil:
		return to, v.unrouted(0, RefusalNoLeader, fmt.Errorf("no leader is known after %v: %w", v.wait, to.why()))
	case what == routing.Serve:
		return to, v.serve(to.tenure)
	default:
		return to, v.forward(to.peer)
	}
}

// route blocks until there is a route, or the call's patience has ended.
func (v *visit) route() (*route, routing.Decision, error) {
	to := v.router.Now()
	if what := to.Decide(v.hop.token); what > routing.Doubt {
		return to, what, nil
	}
	if !v.enter() {
		return to, routing.Wait, errNoRoom
	}
	defer v.lobby.leave(v.caller.from)
	return v.router.Next(v.caller.Context(), v.hop.token, v.patience.until)
}

// pause waits before the next attempt. It is false if there is no time for one.
func (v *visit) pause(seen *route, while time.Duration) (bool, error) {
	if !v.enter() {
		return false, v.crowded()
	}
	defer v.lobby.leave(v.caller.from)
	return v.router.Pause(v.caller.Context(), seen, while, v.patience.until), nil
}

// enter lets the call wait, with what it has said so far. It is false if there is no room.
func (v *visit) enter() bool { return v.caller.roomy() && v.lobby.enter(v.caller.from) }

var errNoRoom = status.Error(codes.ResourceExhausted, "eldest: too many calls wait, or too large ones")

// crowded is the answer to a call for which there is no room to wait.
func (v *visit) crowded() error {
	return refused(RefusalBusy, refusal{
		election: v.election, token: v.hop.token, untouched: true, code: codes.ResourceExhausted,
		why: fmt.Sprintf("too many calls wait for a leader at node %q, or too large ones", v.node),
	}.err())
}

// serve runs the call here, as the leader. A unary call begins when its message is here.
func (v *visit) serve(t *tenure) error {
	v.progress.tries(RefusalTenureEnded)
	v.progress.enter(stageServing)
	m, ok := t.methods[v.name]
	if !ok {
		service, method := split(v.name)
		return status.Errorf(codes.Unimplemented, "unknown method %v for service %v", method, service)
	}
	if m.unary != nil {
		if v.hop.token > 0 {
			v.caller.SetTrailer(metadata.Pairs(unaryKey, ""))
		}
		if err := v.patience.apart(func() error { return v.arrive(t) }); err != nil {
			return err
		}
	}
	err := v.dispatcher.dispatch(v.caller.again(), t, m)
	if errors.Is(err, errNotBegun) {
		v.progress.enter(stageWaiting)
	} else if _, lost := LostLeadership(err, v.election); lost { // a handler's own details have been removed
		return refused(RefusalTenureEnded, err)
	}
	return err
}

// arrive blocks until the message of a unary call is here. The error is errNotBegun if the
// tenure ends before: then the message, when it comes, is for the next leader.
func (v *visit) arrive(t *tenure) error {
	here, said := make(chan error, 1), v.caller.again()
	v.crew.Go(func() { here <- said.fill() })
	select {
	case err := <-here:
		return err
	case <-t.ctx.Done():
		v.progress.enter(stageWaiting)
		return fmt.Errorf("%w: %w", errNotBegun, t.lost())
	}
}

// forward relays the call to the leader.
func (v *visit) forward(p *peer) error {
	v.progress.tries(RefusalUnreachable)
	s, err := p.take(v.caller.from)
	switch {
	case errors.Is(err, errHungUp):
		return err
	case err != nil:
		return v.unrouted(p.leader.Token, RefusalUnreachable, fmt.Errorf("the leader's address %q cannot be dialled: %w", p.leader.Address, err))
	}
	defer s.done()
	v.progress.enter(stageForwarding)
	return relay{visit: v, leader: p, link: s}.forward()
}

// unrouted is the answer to a call that went nowhere.
func (v *visit) unrouted(token eldest.Token, reason Refusal, why error) error {
	return refused(reason, refusal{election: v.election, token: token, untouched: true, why: why.Error()}.err())
}

// split takes the full name of a method apart.
func split(name string) (service, method string) {
	name = strings.TrimPrefix(name, "/")
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		return name[:at], name[at+1:]
	}
	return "", name
}
