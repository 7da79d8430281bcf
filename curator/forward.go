package curator

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// relay is one call on its way to the leader: any method, known to this process or not, as a
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
//	the leader, or the way     gRPC makes up a status for answers, which is told from one of
//	there, dies                the leader's own (see ended)
//
// What may have come to a handler is never sent a second time by us: it may have been carried
// out. (gRPC itself may send a call again of which it has proof that it never reached any
// handler.)
type relay struct {
	*visit
	leader *peer
	link   *seat
	opened time.Time // the call to the leader
}

// forward relays the call and returns how it ended. It blocks until then. The error is an
// *unsentError if the call has not begun at the leader; then all that the caller sent can be
// received once more.
func (r relay) forward() error {
	// A message that waits for a connection would be held, and one that is not read is not.
	if r.leader.unary.knows(r.name) && r.link.GetState() == connectivity.Ready {
		return r.exchange()
	}
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
	r.crew.Go(func() { requests(said, r.link, there, cancel) })
	err = r.answers(said, there)
	if unread := context.Cause(ctx); unread != nil && !errors.Is(unread, routing.ErrPatience) && r.caller.Context().Err() == nil {
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
	if r.link.GetState() != connectivity.Ready {
		if !r.enter() {
			return nil, r.crowded()
		}
		defer r.lobby.leave(r.caller.from)
	}
	md := toLeader(ctx, hop{token: r.leader.leader.Token, from: r.node})
	r.progress.enter(stageWaiting)
	patience := time.AfterFunc(r.patience.left(), func() { cancel(routing.ErrPatience) })
	defer patience.Stop()
	there, err := r.link.NewStream(metadata.NewOutgoingContext(ctx, md), desc, r.name, options...)
	if err != nil {
		return nil, r.unsent(status.Convert(err))
	}
	r.progress.enter(stageForwarding)
	return there, nil
}

// requests moves what the caller sends, until it has sent all or either side has ended.
// What the end means is for answers to find out, on the leader's stream.
func requests(said *reading, link *seat, leader grpc.ClientStream, cancel context.CancelCauseFunc) {
	var f rawframe.Frame
	for {
		switch err := said.RecvMsg(&f); {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = leader.CloseSend()
			return
		case errors.Is(err, errSuperseded):
			return
		default:
			cancel(err)
			return
		}
		err := link.send(leader, &f)
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
func (r relay) answers(said *reading, leader grpc.ClientStream) error {
	header, err := leader.Header()
	if err == nil && header != nil {
		said.commit() // the call has begun, and the caller knows
		if err := r.header(header, r.caller.SendHeader); err != nil {
			return err
		}
	}
	var f rawframe.Frame
	for {
		if err := leader.RecvMsg(&f); errors.Is(err, io.EOF) {
			return r.ended(said, leader.Trailer(), status.New(codes.OK, ""))
		} else if err != nil {
			return r.ended(said, leader.Trailer(), status.Convert(err))
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

// exchange relays a call that is one message each way, as the leader has said of the
// method. It does what the two loops do, for less than half of what they cost: it takes
// turns instead of goroutines, and what goes together on the wire stays together.
func (r relay) exchange() error {
	if err := r.patience.apart(r.caller.again().fill); err != nil {
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
	said := r.caller.again()
	if err := said.RecvMsg(&in); err != nil {
		return err
	}
	err = r.link.send(there, &in)
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
