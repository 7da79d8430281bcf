package curator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/curatorpb"
)

// ended passes on how the leader's stream ended, if it was the leader who ended it.
func (r relay) ended(said *reading, trailer metadata.MD, st *status.Status) error {
	served, marked := trailer[servedKey]
	if !marked && madeUp(trailer, st.Code()) {
		return r.broken(st)
	}
	if _, ok := trailer[unaryKey]; ok {
		r.leader.unary.learn(r.name)
	}
	// What no curator has refused is the call's own fault, such as a message over the leader's limit.
	reason := trailer[refusedKey]
	turnedAway := marked && !slices.Contains(served, begun) && len(reason) > 0 && (st.Code() == codes.Unavailable || st.Code() == codes.ResourceExhausted)
	switch {
	case !turnedAway:
	case !r.caller.roomy(): // so it was not kept
		return r.crowded()
	case said.takeBack():
		if _, unary := trailer[unaryKey]; unary && !r.caller.complete() {
			r.patience.spare(time.Since(r.opened)) // the caller's own time
		}
		return &unsentError{refusedThere(reason, st.Err())}
	}
	r.caller.SetTrailer(toCaller(trailer))
	return refusedThere(reason, withoutLost(st.Err(), func(lost *curatorpb.LostLeadership) bool { return lost.GetElection() != r.election }))
}

// madeUp reports whether an end without the mark of a curator may be the work of a
// connection, or of somebody who is no curator. Where the leader's operator has put
// something in front of the curator, such as an interceptor that refuses who may not call
// or sheds load, its word has no mark. But it is the word of a gRPC server, which begins
// with a content type; what gRPC's client makes up is a code and nothing else. A server
// that is not the leader's, at an address that was, knows no such method; or it does: OK
// proves nothing.
func madeUp(trailer metadata.MD, c codes.Code) bool {
	if c == codes.OK || c == codes.Unimplemented {
		return true
	}
	_, spoken := trailer["content-type"]
	return !spoken
}

// skew is by how much the end of one deadline may be seen earlier by the leader's timers
// than by ours.
const skew = 100 * time.Millisecond

// broken says what the caller is told when the call did not end by the leader's word: its
// own end, if it was that, or else that the connection was lost.
func (r relay) broken(st *status.Status) error {
	if err := r.callersEnd(st); err != nil {
		return err
	}
	return r.lost(st, "was lost", false)
}

// unsent is broken for a call that has not left this node: it can go elsewhere, or be
// tried once more, without anybody's knowing. What gRPC does not let pass at all, such as
// too much metadata, is the caller's; and one who is not the leader will not become it.
func (r relay) unsent(st *status.Status) error {
	if err := r.callersEnd(st); err != nil {
		return err
	}
	if st.Code() == codes.Canceled && r.patience.left() <= 0 {
		st = status.New(codes.Canceled, "no connection or no stream of it was to be had in time")
	}
	if c := st.Code(); c != codes.Unavailable && c != codes.Canceled {
		return st.Err()
	}
	err := r.lost(st, "could not be made", true)
	r.leader.warned.Do(func() {
		to := r.leader.leader
		r.logger.Warn("the leader cannot be reached", "election", r.election, "node", r.node,
			"leader", to.NodeID, "address", to.Address, "token", int64(to.Token), "error", err)
	})
	if r.link.impostor.Load() {
		return err
	}
	return &unsentError{err}
}

// unsentError is the end of an attempt in which the call has not begun anywhere: it can go
// elsewhere. It is what the caller is told in the end, if nothing better can be done.
type unsentError struct{ error }

// callersEnd returns the caller's own end, if that ended the call.
func (r relay) callersEnd(st *status.Status) error {
	caller := r.caller.Context()
	if err := caller.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if deadline, ok := caller.Deadline(); ok && time.Until(deadline) < skew {
		if c := st.Code(); c == codes.Canceled || c == codes.DeadlineExceeded {
			return status.FromContextError(context.DeadlineExceeded).Err()
		}
	}
	return nil
}

func (r relay) lost(st *status.Status, how string, untouched bool) error {
	why := fmt.Sprintf("%s: %s", st.Code(), st.Message())
	if reason := r.link.reason(); reason != nil {
		why = reason.Error()
	}
	reason, leader := RefusalConnectionLost, r.leader.leader
	if untouched {
		reason = RefusalUnreachable
	}
	return refused(reason, refusal{
		election: r.election, token: leader.Token, node: leader.NodeID, untouched: untouched,
		why: fmt.Sprintf("the connection to the leader, node %q at %q, %s: %s", leader.NodeID, leader.Address, how, why),
	}.err())
}
