package wiretap

import (
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Kind says what a message is.
type Kind string

// The kinds.
const (
	// Request goes from a client to etcd, Answer from etcd to a client; events, which
	// nobody asked for at that moment, are answers of a watch's call.
	Request Kind = "request"
	Answer  Kind = "answer"
	// End is the end of a call, with its status. A call of one request and one answer that
	// succeeded has none: the answer says so.
	End Kind = "end"
	// Note is what somebody beside the wire says of what happens; see Proxy.Note.
	Note Kind = "note"
)

// Message is one thing that was seen.
type Message struct {
	// At is when, since the start of the proxy.
	At time.Duration
	// Lane is who on the client's side, and Connection which of his connections, counted
	// from 1 in the order in which they were opened.
	Lane       string
	Connection int
	Kind       Kind
	// Call numbers the calls from 1; Method is the call's, as in /etcdserverpb.KV/Range.
	Call   int
	Method string
	// RequireLeader says that the client wants the call ended when etcd has no leader.
	RequireLeader bool
	// Stream says that the call may have many messages either way.
	Stream bool
	// Body is the message, decoded; nil where its type is not known, or it is none. It must
	// not be changed. Size is its length on the wire.
	Body proto.Message
	Size int
	// Lost says that it was not passed on, because the lane is cut off.
	Lost bool
	// Status is how the call ended; only of an End.
	Status *status.Status
	// Text is what a Note says.
	Text string
}
