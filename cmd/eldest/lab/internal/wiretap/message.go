package wiretap

import (
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Kind is the kind of a message.
type Kind string

// The kinds.
const (
	// Request goes from a client to etcd, Answer from etcd to a client; events, which have no
	// request of their own, are answers of a watch's call.
	Request Kind = "request"
	Answer  Kind = "answer"
	// End is the end of a call, with its status. A call of one request and one answer has none if
	// it succeeded.
	End Kind = "end"
	// Note is a remark of the program that uses the proxy; see Proxy.Note.
	Note Kind = "note"
)

// Message is one recorded message.
type Message struct {
	// Number counts the messages of the proxy from 1, in the order of the record.
	Number int64
	// At is the time since the start of the proxy.
	At time.Duration
	// Lane is the client, and Connection the number of its connection, counted from 1 in the order
	// in which connections were opened.
	Lane       string
	Connection int
	Kind       Kind
	// Call numbers the calls from 1; Method is the call's, as in /etcdserverpb.KV/Range.
	Call   int
	Method string
	// RequireLeader means that the client requires the call to end when etcd has no leader.
	RequireLeader bool
	// Stream means that the call may have many messages in either direction.
	Stream bool
	// Body is the decoded message; nil if its type is unknown, or if there is none. It must not be
	// changed. Size is its length on the wire.
	Body proto.Message
	Size int
	// Lost means that it was not passed on, as Config.Record decided.
	Lost bool
	// Status is how the call ended; only an End has it.
	Status *status.Status
	// Text is the text of a Note.
	Text string
}
