package bench

import (
	"errors"
	"time"
)

// What a worker is asked to do. Each is a line of JSON on the worker's stdin, each
// answer one on its stdout, in whatever order the answers come.
const (
	opOpen      = "open"      // Contender, TTL: a session, named in the answer's Ref
	opCandidate = "candidate" // Of a session, Election, Value: a candidate in Ref
	opCampaign  = "campaign"  // Of a candidate: At of the win, Key, Tells
	opLost      = "lost"      // Of a candidate: answered when it is told of the loss, At
	opResign    = "resign"    // Of a candidate
	opPut       = "put"       // Of a candidate, Key, Value
	opClose     = "close"     // Of a session or a crowd
	opObserve   = "observe"   // Contender, Election, Size: a crowd in Ref
	opAwait     = "await"     // Of a crowd, Key: First and Last
	opWire      = "wire"      // Wire
	opShift     = "shift"     // By
	opCut       = "cut"       // Cut
	opCancel    = "cancel"    // Of a call, by its ID; there is no answer
)

// workCall is one request to a worker. The parent numbers its calls.
type workCall struct {
	ID int64  `json:"id"`
	Op string `json:"op"`
	// Of is what the call is about, as an earlier answer named it.
	Of        int64         `json:"of,omitempty"`
	Contender string        `json:"contender,omitempty"`
	Election  string        `json:"election,omitempty"`
	Key       string        `json:"key,omitempty"`
	Value     string        `json:"value,omitempty"`
	TTL       time.Duration `json:"ttl,omitempty"` // in nanoseconds
	Size      *CrowdSize    `json:"size,omitempty"`
	By        int           `json:"by,omitempty"`
	Cut       bool          `json:"cut,omitempty"`
}

// workAnswer is the answer to the call of the same ID. Times are nanoseconds since
// 1970 on the worker's clock.
type workAnswer struct {
	ID    int64  `json:"id"`
	Ref   int64  `json:"ref,omitempty"`
	At    int64  `json:"at,omitempty"`
	First int64  `json:"first,omitempty"`
	Last  int64  `json:"last,omitempty"`
	Key   string `json:"key,omitempty"`
	// Tells says whether the candidate will tell of its loss at all.
	Tells bool  `json:"tells,omitempty"`
	Wire  *Wire `json:"wire,omitempty"`
	// Error is the text of the call's error. Unsupported says that it wraps
	// errors.ErrUnsupported: the one error that scenarios tell from the others.
	Error       string `json:"error,omitempty"`
	Unsupported bool   `json:"unsupported,omitempty"`
}

// failed makes it the answer of a call that ended with err, which may be nil.
func (a workAnswer) failed(err error) workAnswer {
	if err != nil {
		a.Error, a.Unsupported = err.Error(), errors.Is(err, errors.ErrUnsupported)
	}
	return a
}

// err is the error that the call ended with, on the parent's side.
func (a workAnswer) err() error {
	if a.Error == "" {
		return nil
	}
	return workError{text: a.Error, unsupported: a.Unsupported}
}

// workError is an error of a worker: its text, and what little survives the journey.
type workError struct {
	text        string
	unsupported bool
}

func (e workError) Error() string { return e.text }

func (e workError) Unwrap() error {
	if e.unsupported {
		return errors.ErrUnsupported
	}
	return nil
}

// stamp is a time as it travels. It loses the monotonic reading: between processes
// only the wall clock counts.
func stamp(t time.Time) int64 { return t.UnixNano() }

func unstamp(ns int64) time.Time { return time.Unix(0, ns) }
