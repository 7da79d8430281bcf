package peers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The commands of a participant.
const (
	doOpen     = "open"
	doCampaign = "campaign" // answered at once; the events follow
	doAppend   = "append"   // the leader appends entries from now on
	doCease    = "cease"    // no participant of the process appends any more
	doResign   = "resign"   // answered at once, with the time; the event follows
	doCut      = "cut"
	doHeal     = "heal"
	doLog      = "log"
	doGuards   = "guards"
	doObserve  = "observe" // N observers
	doTold     = "told"    // answered when the last observer has been told of the leader Name
	doJoin     = "join"    // N candidates; answered when all are queued
	doMemory   = "memory"  // as join
	doCounts   = "counts"
	doHeld     = "held"
	doAccepted = "accepted" // answered when an entry was accepted that was appended after At
)

// The events of a participant.
const (
	// evQueued: the candidate waits.
	evQueued = "queued"
	evWon    = "won"
	// evLost: the client does not report any more that it leads.
	evLost = "lost"
	// evAppended: the store has accepted the first entry.
	evAppended = "appended"
	evResigned = "resigned"
	// evFailed: the campaign has failed.
	evFailed = "failed"
)

// request is a line of a participant's stdin.
type request struct {
	ID int64  `json:"id"`
	Do string `json:"do"`
	// Open is for doOpen.
	Open *opening `json:"open,omitempty"`
	N    int      `json:"n,omitempty"`
	Name string   `json:"name,omitempty"`
	// Append is for doCampaign: the candidate appends an entry every 20 ms while it leads.
	Append bool  `json:"append,omitempty"`
	At     int64 `json:"at,omitempty"`
}

// opening is how a participant opens its client; see peer.ClientConfig.
type opening struct {
	System    string   `json:"system"`
	Setting   string   `json:"setting"`
	Endpoints []string `json:"endpoints"`
	Election  string   `json:"election"`
	ID        string   `json:"id"`
	Index     int      `json:"index"`
}

// reply is a line of a participant's stdout: the answer to the request of its ID, or an event.
type reply struct {
	ID    int64  `json:"id,omitempty"`
	Event string `json:"event,omitempty"`
	// At is a time, in nanoseconds since 1970: of the event, or what the command asks for. 0 means never.
	At int64 `json:"at,omitempty"`
	// Took is the duration of a join; N the bytes of a candidate.
	Took   time.Duration `json:"took,omitempty"`
	N      int64         `json:"n,omitempty"`
	Writes int64         `json:"writes,omitempty"`
	Bytes  int64         `json:"bytes,omitempty"`
	Guards []int         `json:"guards,omitempty"`
	Log    []stretch     `json:"log,omitempty"`
	Error  string        `json:"error,omitempty"`
	// Unsupported means that the error wraps errors.ErrUnsupported.
	Unsupported bool `json:"unsupported,omitempty"`
}

// fail puts an error into a reply.
func (r reply) fail(err error) reply {
	if err != nil {
		r.Error, r.Unsupported = err.Error(), errors.Is(err, errors.ErrUnsupported)
	}
	return r
}

// remoteError is an error of a participant.
type remoteError struct {
	text        string
	unsupported bool
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() error {
	if e.unsupported {
		return errors.ErrUnsupported
	}
	return nil
}

// err returns the error of a reply.
func (r *reply) err() error {
	if r.Error == "" {
		return nil
	}
	return &remoteError{r.Error, r.Unsupported}
}

// stretch is how many entries in a row have the same writer.
type stretch struct {
	Writer string `json:"writer"`
	N      int    `json:"n"`
}

// entry is an entry of an election's log: the writer and a number.
func entry(writer string, n int) string { return fmt.Sprintf("%s %d", writer, n) }

// stretches condenses a log.
func stretches(log []string) (all []stretch) {
	for _, e := range log {
		writer, _, _ := strings.Cut(e, " ")
		if last := len(all) - 1; last < 0 || all[last].Writer != writer {
			all = append(all, stretch{Writer: writer})
		}
		all[len(all)-1].N++
	}
	return all
}

// lateWrites reports whether a log has entries of old after the first of successor.
func lateWrites(log []stretch, old, successor string) bool {
	began := false
	for _, s := range log {
		began = began || s.Writer == successor
		if began && s.Writer == old {
			return true
		}
	}
	return false
}

// written reports whether a log has entries of a writer.
func written(log []stretch, writer string) bool {
	return slices.ContainsFunc(log, func(s stretch) bool { return s.Writer == writer })
}

func nanos(t time.Time) int64 { return t.UnixNano() }

func timeOf(nanos int64) time.Time { return time.Unix(0, nanos) }
