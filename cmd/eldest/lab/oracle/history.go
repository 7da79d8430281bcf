package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// About is the configuration of the run.
type About struct {
	// Prefix is the prefix of the candidates' keys, with its slash; Data is the key that the
	// leaders write, whose values are [WriteValue]. It has no value at first. If there are several
	// such registers, their keys are Data, a slash and a name.
	Prefix string `json:"prefix"`
	Data   string `json:"data"`
	// Opens means that each tenure begins with a write of its own (Change.Opens).
	Opens bool `json:"opens,omitempty"`
	// TTL is the TTL that the server granted.
	TTL time.Duration `json:"ttl"`
	// Recovery is how soon after [Healed] a candidate must lead, and the queue must have settled.
	// 0: TTL + 3 s.
	Recovery time.Duration `json:"recovery,omitempty"`
	// Looks means that the queue is listed again and again while faults continue, and is the number of lists
	// in a row in which something must be wrong. 0: each list is of a queue that has settled.
	Looks int `json:"looks,omitempty"`
}

// History is one run.
type History struct {
	About
	Events  []Event  // in the order of their Seq, which is that of their instants
	Changes []Change // in the order of revisions
}

// Violation is one breach of an invariant.
type Violation struct {
	Invariant string // "I1" to "I7", or the checker's name
	At        time.Duration
	Text      string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s violated at %.3fs: %s", v.Invariant, v.At.Seconds(), v.Text)
}

// found are the violations of one invariant.
type found struct {
	invariant string
	all       []Violation
}

func (f *found) add(at time.Duration, format string, args ...any) {
	f.all = append(f.all, Violation{Invariant: f.invariant, At: at, Text: fmt.Sprintf(format, args...)})
}

// Check judges a history whose instants and revisions are exact, as in virtual time.
func (h *History) Check() []Violation {
	return slices.Concat(I1(h), I5(h), I6(h), I7(h), h.judge())
}

// Judge judges a history of processes: participants report a moment after the fact, changes of the
// store are reported later than they were made, and the revision of the store at a report is
// unknown.
func (h *History) Judge() []Violation { return slices.Concat(Order(h), h.judge()) }

func (h *History) judge() []Violation {
	return slices.Concat(I2(h), I3(h), I4(h), Linear(h), Precedes(h), Tokens(h), Leading(h), Observations(h), Healing(h), Fence(h), Transfers(h), Exits(h), Leftovers(h))
}

// recovery is how soon after the faults everything must be well.
func (h *History) recovery() time.Duration { return cmp.Or(h.Recovery, h.TTL+3*time.Second) }

// end is the instant of the last event.
func (h *History) end() time.Duration {
	if n := len(h.Events); n > 0 {
		return h.Events[n-1].At
	}
	return 0
}

// quietly are the kinds of most entries of a log, which do not help its reader.
var quietly = map[Kind]bool{Sent: true, Acked: true, Trouble: true, Sure: true, Read: true, FenceAccepted: true}

// String is the log and the store's changes in one column of instants, without the successful
// writes, which are most of it.
func (h *History) String() string {
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	for _, c := range h.Changes {
		if !h.isRegister(c.Key) {
			lines = append(lines, line{c.At, c.String()})
		}
	}
	for _, e := range h.Events {
		if !quietly[e.Kind] {
			lines = append(lines, line{e.At, e.String()})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintln(&b, l.text)
	}
	return b.String()
}

// LeaseOf returns the lease in a candidate's key. It is part of the name, and stays there if
// another client overwrites the key without its lease. 0 for other keys.
func LeaseOf(key string) int64 {
	id, _ := strconv.ParseInt(key[strings.LastIndexByte(key, '/')+1:], 16, 64)
	return id
}

// WriteValue is the value of a guarded write: its token, and the unique name of the write.
func WriteValue(token int64, name string) string { return fmt.Sprintf("%d %s", token, name) }

// ReadValue is the name of the write that made a value, for [Read]. It is an error
// if no write made it.
func ReadValue(value string) (name string, err error) {
	_, name, ok := parseWrite(value)
	if !ok {
		return "", fmt.Errorf("%w: value %q", ErrMalformed, value)
	}
	return name, nil
}

// parseWrite is the inverse of WriteValue.
func parseWrite(value string) (token int64, name string, ok bool) {
	number, name, ok := strings.Cut(value, " ")
	token, err := strconv.ParseInt(number, 10, 64)
	return token, name, ok && err == nil && name != ""
}
