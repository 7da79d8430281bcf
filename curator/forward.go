package curator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// relay is one attempt to forward a call to the leader: any method, known to this process or not, as a
// stream of frames in either direction.
//
//	caller ──frames──▶ requests ──frames──▶ leader
//	caller ◀──frames── answers  ◀──frames── leader
//
// Each direction is one loop that holds one message at a time, and receives the next
// when the last has been taken: so the flow control of either side reaches the other.
// The two loops end like this, whatever comes first:
//
//	the caller half-closes     requests half-closes the leader's side and ends; answers goes on
//	the caller goes away       its context ends, and with it the call to the leader; both loops end
//	the deadline passes        the same, on all three nodes
//	a message cannot be read   that is the answer, and the call to the leader is cancelled
//	the leader answers early   answers ends, and so does the caller's stream; then requests does
//	the leader refuses before  the call goes elsewhere as it came, if that was kept; requests
//	the call begins there      ends when it has received what it was waiting for
//	the leader or the network  answers gets a status from gRPC, which is distinguished from
//	fails                      one of the leader (see ended)
//
// What may have reached a handler is never sent a second time: it may have been applied.
// (gRPC itself sends a call again if it has proof that it never reached a handler.)
type relay struct {
	*incoming
	leader *peer
	conn   *share
	opened time.Time // the call to the leader
}

// forward relays the call to the leader and returns how it ended. It blocks until then. The error is errNotBegun or an
// *unsentError if the call has not begun at the leader; then all that the caller sent can be
// received once more.
func (v *incoming) forward(p *peer) error {
	v.progress.tries(RefusalUnreachable)
	conn, err := p.take(v.caller.from)
	switch {
	case errors.Is(err, errNotBegun):
		return err
	case err != nil:
		return v.unrouted(p.leader.Token, RefusalUnreachable, fmt.Errorf("the leader's address %q cannot be dialled: %w", p.leader.Address, err))
	}
	defer conn.done()
	v.progress.enter(WayForwarded)
	r := relay{incoming: v, leader: p, conn: conn}
	// A message that waits for a connection would be held, and one that is not read is not.
	if _, unary := p.unary.Load(v.name); unary && conn.link.GetState() == connectivity.Ready {
		return r.exchange()
	}
	return r.stream()
}

// stream relays a call that may have any number of messages in both directions.
func (r relay) stream() error {
	ctx, cancel := context.WithCancelCause(r.caller.Context())
	// Whatever ends this call must end the one to the leader, or its resources and the
	// leader's handler would stay until the connection is closed.
	defer cancel(nil)
	there, err := r.open(ctx, cancel, anyStream)
	if err != nil {
		return err
	}
	r.opened = time.Now()
	said := r.caller.again()
	r.goroutines.Go(func() { r.requests(said, there, cancel) })
	err = r.answers(said, there)
	if unread := context.Cause(ctx); unread != nil && !errors.Is(unread, routing.ErrWaitLimit) && r.caller.Context().Err() == nil {
		return unread // neither the leader's end nor the caller's
	}
	return err
}

var (
	// anyStream may carry any number of messages in both directions, as far as we know.
	anyStream = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	// oneEach carries one message in each.
	oneEach = &grpc.StreamDesc{}
)

// open opens the call to the leader. It blocks until there is a connection, for which it waits
// as for a leader, and, where the leader limits their number, a stream. If it fails the call has
// not left this node, and the error is how it ended.
func (r relay) open(ctx context.Context, cancel context.CancelCauseFunc, desc *grpc.StreamDesc) (grpc.ClientStream, error) {
	options := make([]grpc.CallOption, 1, 2)
	options[0] = grpc.ForceCodecV2(rawframe.Codec{}) // frames, under the caller's name for what is in them
	if sub := subtype(ctx); sub != "" {
		options = append(options, grpc.CallContentSubtype(sub))
	}
	if r.conn.link.GetState() != connectivity.Ready {
		if !r.enter() {
			return nil, r.overloaded()
		}
		defer r.backlog.leave(r.caller.from)
	}
	md := toLeader(ctx, hop{token: r.leader.leader.Token, from: r.cfg.Elector.NodeID})
	r.progress.enter(wayWaiting)
	patience := time.AfterFunc(time.Until(r.until), func() { cancel(routing.ErrWaitLimit) })
	defer patience.Stop()
	there, err := r.conn.link.NewStream(metadata.NewOutgoingContext(ctx, md), desc, r.name, options...)
	if err != nil {
		return nil, r.unsent(status.Convert(err))
	}
	r.progress.enter(WayForwarded)
	return there, nil
}

// requests moves what the caller sends, until it has sent all or either side has ended.
// answers finds out what the end means, on the leader's stream.
func (r relay) requests(said *reading, there grpc.ClientStream, cancel context.CancelCauseFunc) {
	var f rawframe.Frame
	for {
		switch err := said.RecvMsg(&f); {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = there.CloseSend()
			return
		case errors.Is(err, errSuperseded):
			return
		default:
			cancel(err)
			return
		}
		err := r.conn.send(there, &f)
		f.Free()
		if err != nil {
			return
		}
		said.sent()
	}
}

// answers moves what the leader sends, and returns how it ended the call. The header
// goes first and alone, because the leader may have sent it long before a message; where
// there was none the caller gets none, either.
func (r relay) answers(said *reading, there grpc.ClientStream) error {
	header, err := there.Header()
	if err == nil && header != nil {
		said.commit() // the call has begun, and the caller is about to know
		if err := r.header(header, r.caller.SendHeader); err != nil {
			return err
		}
	}
	var f rawframe.Frame
	for {
		if err := there.RecvMsg(&f); errors.Is(err, io.EOF) {
			return r.ended(said, there.Trailer(), status.New(codes.OK, ""))
		} else if err != nil {
			return r.ended(said, there.Trailer(), status.Convert(err))
		}
		said.commit()
		err := r.caller.SendMsg(&f)
		f.Free()
		if err != nil {
			return err
		}
	}
}

// header passes a header on. What the leader's gRPC has let its service send although it is
// odd goes the same way here: around the check of streams.
func (r relay) header(md metadata.MD, pass func(metadata.MD) error) error {
	md = toCaller(md)
	if err := grpc.SetHeader(r.caller.Context(), odd(md)); err != nil {
		return err
	}
	return pass(md)
}

// exchange relays a call that is one message each way, as the leader has marked the
// method. It does what the two loops do, for less than half of their cost: it does
// one thing after the other, without another goroutine, and what goes together on the wire stays together.
func (r relay) exchange() error {
	said, since := r.caller.again(), time.Now()
	err := said.fill()
	r.until = r.until.Add(time.Since(since)) // the caller's own time, in which it sends its message
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.caller.Context())
	defer cancel(nil)
	there, err := r.open(ctx, cancel, oneEach)
	if err != nil {
		return err
	}
	var in, out rawframe.Frame
	defer in.Free()
	defer out.Free()
	if err := said.RecvMsg(&in); err != nil {
		return err
	}
	err = r.conn.send(there, &in)
	said.sent()
	if err == nil {
		err = there.RecvMsg(&out)
	}
	header, _ := there.Header() // it is here by now, or never
	if header != nil {
		said.commit()
		if err := r.header(header, r.caller.SetHeader); err != nil {
			return err
		}
	}
	if err := r.ended(said, there.Trailer(), status.Convert(err)); err != nil {
		return err
	}
	return r.caller.SendMsg(&out)
}

// ended passes on how the leader's stream ended, if it was the leader that ended it.
func (r relay) ended(said *reading, trailer metadata.MD, st *status.Status) error {
	served, marked := trailer[servedKey]
	if !marked && fromTransport(trailer, st.Code()) {
		if err := r.callerEnded(st); err != nil {
			return err
		}
		return r.lost(st, "was lost", RefusalConnectionLost)
	}
	_, unary := trailer[unaryKey]
	if unary {
		r.leader.unary.Store(r.name, nil)
	}
	// What no curator has refused is an error of the call, such as a message over the leader's limit.
	reason := trailer[refusedKey]
	unbegun := marked && !slices.Contains(served, begun) && len(reason) > 0 && (st.Code() == codes.Unavailable || st.Code() == codes.ResourceExhausted)
	enough, _ := r.caller.room()
	switch {
	case !unbegun:
	case !enough: // so it was not kept
		return r.overloaded()
	case said.takeBack():
		if unary {
			r.until = r.until.Add(r.caller.sending(r.opened)) // the caller's own time
		}
		return &unsentError{refusedByLeader(reason, st.Err())}
	}
	r.caller.SetTrailer(toCaller(trailer))
	another := func(lost *curatorpb.LostLeadership) bool { return lost.GetElection() != r.cfg.Elector.Election }
	return refusedByLeader(reason, withoutLost(st.Err(), another))
}

// fromTransport reports whether an end without the mark of a curator may be the work of a
// connection, or of a server that is no curator. Where the leader's operator has put
// something in front of the curator, such as an interceptor that refuses calls
// or sheds load, its answer has no mark. But it is the answer of a gRPC server, which begins
// with a content type; what gRPC's client makes up is a code and nothing else. A server
// that has taken over the leader's address answers that the method is unknown; or it has the
// method: OK proves nothing.
func fromTransport(trailer metadata.MD, c codes.Code) bool {
	_, spoken := trailer["content-type"]
	return !spoken || c == codes.OK || c == codes.Unimplemented
}

// unsent is the end of a call that has not left this node: it can be tried again, here or
// at another leader. What gRPC refuses to send, such as too much metadata, is the caller's
// fault; and a server that is not the leader will not become it.
func (r relay) unsent(st *status.Status) error {
	if err := r.callerEnded(st); err != nil {
		return err
	}
	if st.Code() == codes.Canceled && time.Until(r.until) <= 0 {
		st = status.New(codes.Canceled, "no connection or no stream of it was to be had in time")
	}
	if c := st.Code(); c != codes.Unavailable && c != codes.Canceled {
		return st.Err()
	}
	err := r.lost(st, "could not be made", RefusalUnreachable)
	r.leader.warned.Do(func() {
		to := r.leader.leader
		r.cfg.Logger.Warn("the leader cannot be reached", "election", r.cfg.Elector.Election, "node", r.cfg.Elector.NodeID,
			"leader", to.NodeID, "address", to.Address, "token", int64(to.Token), "error", err)
	})
	if r.conn.link.impostor.Load() {
		return err
	}
	return &unsentError{err}
}

// skew is by how much the end of one deadline may be seen earlier by the leader's timers
// than by ours.
const skew = 100 * time.Millisecond

// callerEnded returns the caller's own end, if that ended the call.
func (r relay) callerEnded(st *status.Status) error {
	caller := r.caller.Context()
	if err := caller.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	deadline, ok := caller.Deadline()
	if c := st.Code(); ok && time.Until(deadline) < skew && (c == codes.Canceled || c == codes.DeadlineExceeded) {
		return status.FromContextError(context.DeadlineExceeded).Err()
	}
	return nil
}

// lost is the answer to a call that was ended neither by the leader nor by the caller.
func (r relay) lost(st *status.Status, how string, reason Refusal) error {
	why := fmt.Sprintf("%s: %s", st.Code(), st.Message())
	if closed := r.conn.link.calls.Cause(); closed != nil {
		why = closed.Error()
	}
	leader := r.leader.leader
	return refusal{
		reason: reason, election: r.cfg.Elector.Election, token: leader.Token, node: leader.NodeID, untouched: reason == RefusalUnreachable,
		why: fmt.Sprintf("the connection to the leader, node %q at %q, %s: %s", leader.NodeID, leader.Address, how, why),
	}.err()
}
