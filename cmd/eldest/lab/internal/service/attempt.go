package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// Method is the method of a request.
type Method string

// The methods.
const (
	Put    Method = "put"
	Append Method = "append"
	Delete Method = "delete"
	Get    Method = "get"
)

// writes reports whether the method changes anything.
func (m Method) writes() bool { return m != Get }

// Outcome is the result of an attempt, as far as the client can determine it.
type Outcome string

// The outcomes.
const (
	// Done: the response confirms that it was carried out.
	Done Outcome = "done"
	// Refused: the response confirms that it was not carried out.
	Refused Outcome = "refused"
	// Open: it is unknown whether it was carried out.
	Open Outcome = "open"
	// Failed: a read without an answer, for any reason. It changed nothing.
	Failed Outcome = "failed"
)

// Attempt is one call of the client, made once. A retry is another attempt.
type Attempt struct {
	Event string `json:"event"` // "attempt"
	// ID is the request id. Reads have one, too; it is not sent.
	ID string `json:"id"`
	// Begin is when it was sent, At when it ended.
	Begin   time.Time  `json:"begin"`
	At      time.Time  `json:"time"`
	Node    string     `json:"node"` // that was called
	Method  Method     `json:"method"`
	Key     string     `json:"key"`
	Value   string     `json:"value,omitempty"` // that was sent
	Code    codes.Code `json:"-"`
	Text    string     `json:"text,omitempty"`
	Answer  string     `json:"status"` // Code as text
	Outcome Outcome    `json:"outcome"`
	// Token and Revision are the receipt's; a read has a revision only.
	Token    eldest.Token `json:"token,omitempty"`
	Revision int64        `json:"revision,omitempty"`
	// Found is what a read returned; Missing means that the response to a read, or to a delete, was
	// that the key does not exist.
	Found   string `json:"found,omitempty"`
	Missing bool   `json:"missing,omitempty"`
	// NotSent means that no connection was established: the node did not receive it.
	NotSent bool `json:"not_sent,omitempty"`
}

// When returns At.
func (a Attempt) When() time.Time { return a.At }

// reads reports whether the attempt shows the content of the store: a read, or a delete that found
// nothing to delete.
func (a Attempt) reads() bool { return a.Missing || a.Method == Get && a.Outcome == Done }

// Draw draws the request. Every value is unique, so that a value that is read identifies its write.
// Each step has its own logs, so that none grows without bound.
func Draw(a *Attempt, rng *rand.Rand, step int) {
	const shared, logs = 8, 4
	a.Key = fmt.Sprintf("key-%d", rng.IntN(shared))
	switch p := rng.IntN(100); {
	case p < 50:
		a.Method, a.Value = Put, "of "+a.ID
	case p < 70:
		a.Method, a.Key, a.Value = Append, fmt.Sprintf("log-%d-%d", step, rng.IntN(logs)+1), a.ID+";"
	case p < 75:
		a.Method = Delete
	default:
		a.Method = Get
	}
}

// Send sends the attempt once and fills in its result. It blocks until the answer or the end of
// ctx, and returns the error of the call.
func (a *Attempt) Send(ctx context.Context, conn grpc.ClientConnInterface, options ...grpc.CallOption) error {
	kv := kvpb.NewKVClient(conn)
	var to peer.Peer // stays empty if no connection received the request
	options = append(options, grpc.Peer(&to))
	a.Begin = time.Now().Round(0)
	var answer interface{ GetReceipt() *kvpb.Receipt }
	var err error
	switch a.Method {
	case Put:
		answer, err = kv.Put(ctx, &kvpb.PutRequest{RequestId: a.ID, Key: a.Key, Value: []byte(a.Value)}, options...)
	case Append:
		answer, err = kv.Append(ctx, &kvpb.AppendRequest{RequestId: a.ID, Key: a.Key, Value: []byte(a.Value)}, options...)
	case Delete:
		answer, err = kv.Delete(ctx, &kvpb.DeleteRequest{RequestId: a.ID, Key: a.Key}, options...)
	case Get:
		var item *kvpb.Item
		item, err = kv.Get(ctx, &kvpb.GetRequest{Key: a.Key}, options...)
		a.Found, a.Revision = string(item.GetValue()), item.GetRevision()
	}
	var receipt *kvpb.Receipt
	if answer != nil {
		receipt = answer.GetReceipt()
	}
	a.Ended(receipt, err, to.Addr != nil)
	return err
}

// Ended fills in how the attempt ended: now, with a receipt or an error. sent is whether a
// connection received the request. A read that finds nothing is Done; a delete that finds nothing
// has read that, and changed nothing.
func (a *Attempt) Ended(receipt *kvpb.Receipt, err error, sent bool) {
	a.At = time.Now().Round(0)
	if receipt != nil {
		a.Token, a.Revision = eldest.Token(receipt.GetToken()), receipt.GetRevision()
	}
	st := status.Convert(err)
	a.Code, a.Answer, a.Text = st.Code(), st.Code().String(), st.Message()
	a.NotSent = !sent && refusedToConnect(st)
	a.Missing = a.Code == codes.NotFound && (a.Method == Get || a.Method == Delete)
	switch {
	case err == nil, a.Missing && a.Method == Get:
		a.Outcome = Done
	case a.Method == Get:
		a.Outcome = Failed
	case a.NotSent, certainlyNot(st):
		a.Outcome = Refused
	default:
		a.Outcome = Open
	}
}

// refusedToConnect reports whether a status says that nobody listens at the address.
// There is no code for that, only the texts of gRPC and of the system. A time limit that was
// exceeded does not count: a node that did not answer in time may exist.
func refusedToConnect(st *status.Status) bool {
	return st.Code() == codes.Unavailable &&
		strings.HasPrefix(st.Message(), `connection error: desc = "transport: Error while dialing: `) &&
		strings.Contains(st.Message(), syscall.ECONNREFUSED.Error())
}

// certainlyNot reports whether a status guarantees that nothing was applied.
func certainlyNot(st *status.Status) bool {
	switch st.Code() {
	case codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument:
		return true
	}
	lost, ok := curator.LostLeadership(st.Err(), Election)
	return ok && lost.GetNothingApplied()
}
