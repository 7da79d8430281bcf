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

// Method is what the client asks for.
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

// Outcome is what the client knows of an attempt.
type Outcome string

// The outcomes.
const (
	// Done: the service says that it was carried out.
	Done Outcome = "done"
	// Refused: the service says that it was not.
	Refused Outcome = "refused"
	// Open: neither is certain.
	Open Outcome = "open"
	// Failed: a read without an answer, whatever the reason. It changed nothing.
	Failed Outcome = "failed"
)

// Attempt is one call of the client's, made once. If it is to be tried again, that is another
// attempt.
type Attempt struct {
	Event string `json:"event"` // "attempt"
	// ID is the request id. Reads have one too; it is not sent.
	ID string `json:"id"`
	// Begin is when it was sent, At when it was over.
	Begin   time.Time  `json:"begin"`
	At      time.Time  `json:"time"`
	Node    string     `json:"node"` // that was called
	Method  Method     `json:"method"`
	Key     string     `json:"key"`
	Value   string     `json:"value,omitempty"` // that was sent
	Code    codes.Code `json:"-"`
	Text    string     `json:"text,omitempty"`
	Answer  string     `json:"status"` // Code in words
	Outcome Outcome    `json:"outcome"`
	// Token and Revision are the receipt's; of a read only the revision is known.
	Token    eldest.Token `json:"token,omitempty"`
	Revision int64        `json:"revision,omitempty"`
	// Found is what a read returned; Missing says that a read, or a delete, was told
	// that there is nothing.
	Found   string `json:"found,omitempty"`
	Missing bool   `json:"missing,omitempty"`
	// NotSent says that no connection came about: the node did not receive it.
	NotSent bool `json:"not_sent,omitempty"`
}

// When is At.
func (a Attempt) When() time.Time { return a.At }

// reads reports whether the attempt says what was there: a read, or a delete that found
// nothing to delete.
func (a Attempt) reads() bool { return a.Missing || a.Method == Get && a.Outcome == Done }

// Draw decides what is asked for. Every value is another one, so that what is read shows who
// wrote it. Each step has logs of its own, so that none grows without bound.
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

// Send sends the attempt once and fills in what becomes of it. It blocks until the answer
// or the end of ctx, and returns the error that the call ended with.
func (a *Attempt) Send(ctx context.Context, conn grpc.ClientConnInterface, options ...grpc.CallOption) error {
	kv := kvpb.NewKVClient(conn)
	var to peer.Peer // stays empty where no connection was given the request
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

// Ended fills in how the attempt ended: now, with a receipt or an error. sent is whether
// a connection was given the request. A read that finds nothing is done; a delete that finds nothing
// has found that, and did nothing.
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
// There is no code for that, only gRPC's text and the system's. A time limit that was
// over before is none of these: a node that did not answer in time may be there.
func refusedToConnect(st *status.Status) bool {
	return st.Code() == codes.Unavailable &&
		strings.HasPrefix(st.Message(), `connection error: desc = "transport: Error while dialing: `) &&
		strings.Contains(st.Message(), syscall.ECONNREFUSED.Error())
}

// certainlyNot reports whether a status promises that nothing was applied.
func certainlyNot(st *status.Status) bool {
	switch st.Code() {
	case codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument:
		return true
	}
	lost, ok := curator.LostLeadership(st.Err(), Election)
	return ok && lost.GetNothingApplied()
}
