package service

import (
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
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

// Attempt is one request of the client's, sent once. If it is to be tried again, that
// is another attempt.
type Attempt struct {
	Event string `json:"event"` // "attempt"
	// ID is the request id. Reads have one too; it is not sent.
	ID string `json:"id"`
	// Begin is when it was sent, At when it was over.
	Begin   time.Time  `json:"begin"`
	At      time.Time  `json:"time"`
	Node    string     `json:"node"` // that was asked
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
	// NotSent says that no connection came about: the node never heard of it.
	NotSent bool `json:"not_sent,omitempty"`
}

// When is At.
func (a Attempt) When() time.Time { return a.At }

// judge fills in what an error says; sent is whether the request was given to any
// connection. A read that finds nothing is done, and so is no delete: it says what it
// found, and did nothing.
func (a *Attempt) judge(err error, sent bool) {
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
// over before is none of these: who was waited for may be there.
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
