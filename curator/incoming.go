package curator

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
)

// tenure is a tenure of this node, with the methods that were registered for it by their full names.
type tenure = routing.Tenure[map[string]*method]

type (
	route  = routing.Route[map[string]*method, *peer]
	router = routing.Router[map[string]*method, *peer]
)

// incoming is a call to an elected service, on its way through this node.
type incoming struct {
	*Curator
	name   string
	hop    hop
	caller *replay
	// until is when the wait for a leader, and for a connection to it, ends. The time that the
	// caller takes to send its message does not count.
	until    time.Time
	progress *progress
	// last is the answer of the last attempt, if the call has not begun there.
	last error
}

// unsentError is the result of an attempt in which the call has not begun: another route can be
// tried. It is the answer if there is no other route in time.
type unsentError struct{ error }

// receive is called by gRPC for each call to a service that is not local. It blocks until
// the call is answered.
func (c *Curator) receive(_ any, stream grpc.ServerStream) (answer error) {
	name, _ := grpc.MethodFromServerStream(stream)
	if service, _ := split(name); c.local.names[service] {
		return unknownMethod(name)
	}
	h := arrived(stream.Context()).hop
	if h.token > 0 {
		stream.SetTrailer(h.served())
	}
	if done, err := c.read(stream, name); done {
		return err
	}
	v := &incoming{
		Curator: c, name: name, hop: h, until: time.Now().Add(c.cfg.Wait),
		caller:   newReplay(stream, c.backlog, callerOf(stream.Context()), h.token > 0),
		progress: c.traffic.begin(name, h, c.cfg.Hooks),
	}
	answer = errUnanswered
	defer v.progress.end(stream, &answer)
	defer v.caller.drop()
	return v.answer()
}

// answer tries one route after another until the call is answered. A call that has not begun,
// because it was too late for a tenure or did not reach the leader, is tried again: there is
// another route now, or there will be one if the leader has failed.
func (v *incoming) answer() error {
	for attempt := 0; ; attempt++ {
		to, err := v.attempt()
		var unsent *unsentError
		switch {
		case errors.Is(err, errNotBegun):
		case errors.Is(err, errNoRoom): // the message came after the attempt had begun, and now the call may have
			return v.busy(false)
		case !errors.As(err, &unsent):
			return err
		default:
			v.last = unsent.error
			v.progress.enter(wayWaiting)
			if more, err := v.pause(to, v.lookAgain(attempt)); err != nil || !more {
				return cmp.Or(err, v.last)
			}
		}
	}
}

// attempt finds a route for the call and takes it.
func (v *incoming) attempt() (*route, error) {
	to, what, err := v.route()
	if err != nil {
		v.progress.missing = RefusalNoLeader
	}
	_, lost := v.caller.room()
	switch ctx := v.caller.Context(); {
	case ctx.Err() != nil:
		return to, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, errNoRoom), lost:
		return to, v.overloaded()
	case what == routing.Refuse && to.Over:
		return to, v.unrouted(v.hop.token, RefusalStopping, to.Reason)
	case err != nil && v.hop.token > 0, what == routing.Refuse:
		return to, v.unrouted(v.hop.token, RefusalWrongNode, to.WrongNode(v.hop.from, v.cfg.Elector.NodeID, v.hop.token))
	case err != nil && v.last != nil:
		return to, v.last
	case err != nil:
		return to, v.unrouted(0, RefusalNoLeader, fmt.Errorf("no leader is known after %v: %w", v.cfg.Wait, to.Why()))
	case what == routing.Serve:
		return to, v.serve(to.Tenure)
	default:
		return to, v.forward(to.Peer)
	}
}

// route blocks until there is a route, or the call has waited long enough.
func (v *incoming) route() (*route, routing.Decision, error) {
	to := v.router.Now()
	if what := to.Decide(v.hop.token); what > routing.WaitBriefly {
		return to, what, nil
	}
	if !v.enter() {
		return to, routing.Wait, errNoRoom
	}
	defer v.backlog.leave(v.caller.from)
	return v.router.Next(v.caller.Context(), v.hop.token, v.until)
}

// pause waits before the next attempt. It returns false if there is no time for one.
func (v *incoming) pause(seen *route, while time.Duration) (bool, error) {
	if !v.enter() {
		return false, v.overloaded()
	}
	defer v.backlog.leave(v.caller.from)
	return v.router.Pause(v.caller.Context(), seen, while, v.until), nil
}

// enter adds the call, with what it has sent so far, to the waiting calls. It returns false if
// there is no room.
func (v *incoming) enter() bool {
	enough, _ := v.caller.room()
	return enough && v.backlog.enter(v.caller.from)
}

var errNoRoom = status.Error(codes.ResourceExhausted, "eldest: too many calls are waiting, or their messages are too large")

// overloaded is the answer to a call for which there is no room to wait.
func (v *incoming) overloaded() error { return v.busy(true) }

func (v *incoming) busy(untouched bool) error {
	return refusal{
		reason: RefusalBusy, election: v.cfg.Elector.Election, token: v.hop.token, untouched: untouched, code: codes.ResourceExhausted,
		why: fmt.Sprintf("too many calls are waiting for a leader at node %q, or their messages are too large", v.cfg.Elector.NodeID),
	}.err()
}

// unrouted is the answer to a call for which there is no route.
func (v *incoming) unrouted(token eldest.Token, reason Refusal, why error) error {
	return refusal{reason: reason, election: v.cfg.Elector.Election, token: token, untouched: true, why: why.Error()}.err()
}

// tenureEnded is the answer to a call whose tenure has ended.
func (v *incoming) tenureEnded(t *tenure, cause error, untouched bool) error {
	return refusal{
		reason: RefusalTenureEnded, election: v.cfg.Elector.Election, token: t.Token, node: v.cfg.Elector.NodeID, untouched: untouched,
		why: fmt.Sprintf("node %q no longer leads: %v", v.cfg.Elector.NodeID, cause),
	}.err()
}

func unknownMethod(name string) error {
	service, method := split(name)
	return status.Errorf(codes.Unimplemented, "unknown method %v for service %v", method, service)
}

// split splits the full name of a method.
func split(name string) (service, method string) {
	name = strings.TrimPrefix(name, "/")
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		return name[:at], name[at+1:]
	}
	return "", name
}
