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

// relay is one attempt to forward a call to the leader: a call of any method, known to this process or
// not, as a stream of frames in each direction.
//
//	caller ──frames──▶ requests ──frames──▶ leader
//	caller ◀──frames── answers  ◀──frames── leader
//
// Each direction is one loop that holds one message at a time, and receives the next when that one
// has been sent. So the flow control of either side reaches the other. The first of these events
// ends the two loops:
//
//	the caller half-closes     requests half-closes the leader's side and ends; answers goes on
//	the caller disconnects     its context ends, and with it the call to the leader; both loops end
//	the deadline passes        the same, on all three nodes
//	a message cannot be read   that error is the answer; the call to the leader is cancelled
//	the leader answers early   answers ends, and so does the caller's stream; then requests does
//	the leader refuses before  the call is sent elsewhere unchanged, if it was kept; requests
//	the call begins there      ends when it has received what it was waiting for
//	the leader or the network  answers gets a status from gRPC, which is distinguished from
//	fails                      one of the leader (see ended)
//
// A call that may have reached a handler is never sent again: it may have been applied. (gRPC itself
// sends a call again only if it has proof that the call never reached a handler.)
type relay struct {
	*incoming
	leader *peer
	conn   *share
	opened time.Time // the call to the leader
}

// forward relays the call to the leader and returns how it ended. It blocks until then. The error
// is errNotBegun or an *unsentError if the call has not begun at the leader; then everything that
// the caller sent can be received again.
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
	// While it waits for a connection, exchange would hold the message; stream does not read it.
	if _, unary := p.unary.Load(v.name); unary && conn.link.GetState() == connectivity.Ready {
		return r.exchange()
	}
	return r.stream()
}

// stream relays a call that may have any number of messages in both directions.
func (r relay) stream() error {
	ctx, cancel := context.WithCancelCause(r.caller.Context())
	// Every end of this call must end the one to the leader. Otherwise its resources and the
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
		return unread // a message of the caller could not be read, and gRPC has answered so; or it had no room
	}
	return err
}

var (
	// anyStream may carry any number of messages in both directions.
	anyStream = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	// oneEach carries one message in each direction.
	oneEach = &grpc.StreamDesc{}
)

// open opens the call to the leader. It blocks until there is a connection, for which it waits as
// for a leader, and, if the leader limits the number of streams, until a stream is free. If it
// fails, the call has not left this node, and the error is how it ended.
func (r relay) open(ctx context.Context, cancel context.CancelCauseFunc, desc *grpc.StreamDesc) (grpc.ClientStream, error) {
	options := make([]grpc.CallOption, 1, 2)
	options[0] = grpc.ForceCodecV2(rawframe.Codec{}) // frames, with the caller's content-subtype
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
	patience := time.AfterFunc(routing.Patience(r.until), func() { cancel(routing.ErrWaitLimit) })
	defer patience.Stop()
	there, err := r.conn.link.NewStream(metadata.NewOutgoingContext(ctx, md), desc, r.name, options...)
	if err != nil {
		return nil, r.unsent(status.Convert(err))
	}
	r.progress.enter(WayForwarded)
	return there, nil
}

// requests forwards what the caller sends, until the caller has sent all or either side has ended.
// answers determines from the leader's stream what the end means.
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

// answers forwards what the leader sends, and returns how the leader ended the call. The header is
// sent first and alone, because the leader may have sent it long before a message; if there was
// none, the caller gets none either.
func (r relay) answers(said *reading, there grpc.ClientStream) error {
	header, err := there.Header()
	if err == nil && header != nil {
		said.commit() // the call has begun, and the caller is about to receive the header
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

// header passes a header on. Metadata that the leader's gRPC has let its service send, but that the
// check of a grpc.ServerStream rejects (see odd), is passed on without that check.
func (r relay) header(md metadata.MD, pass func(metadata.MD) error) error {
	md = toCaller(md)
	if err := grpc.SetHeader(r.caller.Context(), odd(md)); err != nil {
		return err
	}
	return pass(md)
}

// exchange relays a call of a method that the leader has marked as unary: one message in each
// direction. It does the same as the two loops for less than half of their cost: it needs no other
// goroutine, and what belongs together on the wire stays together.
func (r relay) exchange() error {
	said, since := r.caller.again(), time.Now()
	err := said.fill()
	r.until = r.until.Add(time.Since(since)) // the time in which the caller sends its message does not count
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
	header, _ := there.Header() // it has arrived by now, or there is none
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

// ended returns the answer to the caller when the leader's stream has ended: the leader's status,
// if the leader ended it.
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
	// Without a curator's refusal it is an error of the call itself, such as a message over the
	// leader's limit.
	reason := trailer[refusedKey]
	unbegun := marked && !slices.Contains(served, begun) && len(reason) > 0 && (st.Code() == codes.Unavailable || st.Code() == codes.ResourceExhausted)
	enough, _ := r.caller.room()
	switch {
	case !unbegun:
	case !enough: // so the call was not kept
		return r.overloaded()
	case said.takeBack():
		if unary {
			r.until = r.until.Add(r.caller.sending(r.opened)) // the time in which the caller sends does not count
		}
		return &unsentError{refusedByLeader(reason, st.Err())}
	}
	r.caller.SetTrailer(toCaller(trailer))
	another := func(lost *curatorpb.LostLeadership) bool { return lost.GetElection() != r.cfg.Elector.Election }
	return refusedByLeader(reason, withoutLost(st.Err(), another))
}

// fromTransport reports whether an end without the mark of a curator may come from a broken
// connection, or from a server that is not a curator. If there is something in front of the
// leader's curator, such as an interceptor that refuses calls or sheds load, its answer has no mark
// either. But it is the answer of a gRPC server, which begins with a content type; an answer that
// gRPC's client makes up is only a code. A server that has taken over the leader's address answers
// that the method is unknown; or it has the method, so OK proves nothing.
func fromTransport(trailer metadata.MD, c codes.Code) bool {
	_, spoken := trailer["content-type"]
	return !spoken || c == codes.OK || c == codes.Unimplemented
}

// unsent is the result of a call that has not left this node: it can be tried again, here or at
// another leader. If gRPC refuses to send it, for example because of too much metadata, that is the
// caller's fault. A server that is not the leader is not tried again.
func (r relay) unsent(st *status.Status) error {
	if err := r.callerEnded(st); err != nil {
		return err
	}
	if st.Code() == codes.Canceled && time.Until(r.until) <= 0 {
		st = status.New(codes.Canceled, "no connection or stream was available in time")
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

// skew is by how much earlier the timers of the leader may see the end of a deadline than the
// timers of this node.
const skew = 100 * time.Millisecond

// callerEnded returns the caller's status if its context or its deadline ended the call, else nil.
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

// lost is the answer to a call that neither the leader nor the caller ended.
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
