package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

// hampered reports whether the client did not get what it had requested.
func (a Attempt) hampered() bool { return a.Outcome != Done && !a.Missing }

// reads reports whether the attempt shows the content of the store: a read, or a delete that found
// nothing to delete.
func (a Attempt) reads() bool { return a.Missing || a.Method == Get && a.Outcome == Done }

// Draw draws the request. Every value is unique, so that a value that is read identifies its write.
// Each step has its own logs, so that none grows without bound.
func Draw(a *Attempt, rng *rand.Rand, step int) {
	key, log := fmt.Sprintf("key-%d", rng.IntN(8)), fmt.Sprintf("log-%d-%d", step, rng.IntN(4)+1)
	switch p := rng.IntN(100); {
	case p < 40:
		a.Method, a.Key, a.Value = Put, key, "of "+a.ID
	case p < 60:
		a.Method, a.Key, a.Value = Append, log, a.ID+";"
	case p < 65:
		a.Method, a.Key = Delete, key
	case p < 90:
		a.Method, a.Key = Get, key
	default:
		a.Method, a.Key = Get, log
	}
}

// Send sends the attempt once and fills in its result. It blocks until the answer or the end of
// ctx, and returns the error of the call.
func (a *Attempt) Send(ctx context.Context, conn grpc.ClientConnInterface, options ...grpc.CallOption) error {
	kv := kvpb.NewKVClient(conn)
	var to peer.Peer // stays empty if no connection received the request
	options = append(options, grpc.Peer(&to))
	a.Begin = time.Now().Round(0)
	var answer interface{ GetReceipt() *kvpb.Receipt } = (*kvpb.PutResponse)(nil) // a read has no receipt
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
	a.Ended(answer.GetReceipt(), err, to.Addr != nil)
	return err
}

// refusals are the codes with which the service itself answers that nothing was applied.
var refusals = []codes.Code{codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument}

// Documented reports whether the attempt ended with a code with which a call may end.
func (a *Attempt) Documented() bool {
	switch a.Code {
	case codes.OK,
		codes.Unavailable, codes.DeadlineExceeded, // no leader, or it has lost leadership
		codes.Unknown: // etcd's response does not show whether it was done
		return true
	case codes.NotFound:
		return a.Missing
	default:
		return false
	}
}

// Ended fills in how the attempt ended: now, with a receipt or an error. sent is whether a
// connection received the request. A read that finds nothing is Done; a delete that finds nothing
// has read that, and changed nothing.
func (a *Attempt) Ended(receipt *kvpb.Receipt, err error, sent bool) {
	result := status.Convert(err)
	a.At, a.Code, a.Text, a.Answer = time.Now().Round(0), result.Code(), result.Message(), result.Code().String()
	if receipt != nil {
		a.Token, a.Revision = eldest.Token(receipt.GetToken()), receipt.GetRevision()
	}
	a.Missing = a.Code == codes.NotFound && (a.Method == Get || a.Method == Delete)
	// There is no code for that, only the system's text. A node that did not answer in time may exist,
	// and one that forwards may return the same text about another node: then the request was sent.
	a.NotSent = !sent && a.Code == codes.Unavailable && strings.Contains(a.Text, syscall.ECONNREFUSED.Error())
	lost, _ := curator.LostLeadership(err, Election)
	switch {
	case err == nil, a.Missing && a.Method == Get:
		a.Outcome = Done
	case a.Method == Get:
		a.Outcome = Failed
	case a.NotSent, lost.GetNothingApplied(), slices.Contains(refusals, a.Code):
		a.Outcome = Refused
	default:
		a.Outcome = Open
	}
}
