package oracle

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// About is what the run was set up with.
type About struct {
	// Prefix is where the candidates' keys are, with its slash; Data is the key
	// that the leaders write, whose values are [WriteValue]. It has none at first.
	// Where there are several such registers, their keys are Data, a slash and a name.
	Prefix string `json:"prefix"`
	Data   string `json:"data"`
	// Opens says that each tenure begins with a write of its own (Change.Opens).
	Opens bool `json:"opens,omitempty"`
	// TTL is what the server granted.
	TTL time.Duration `json:"ttl"`
	// Recovery is how soon after [Healed] somebody must lead, and the queue must
	// have settled. 0: TTL + 3 s.
	Recovery time.Duration `json:"recovery,omitempty"`
	// Looks says that the queue is listed again and again while faults go on, and in how many
	// lists in a row something must be wrong. 0: each list is of a queue that has settled.
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

func violated(invariant string, at time.Duration, format string, args ...any) Violation {
	return Violation{Invariant: invariant, At: at, Text: fmt.Sprintf(format, args...)}
}

// Check judges a history whose instants and revisions are exact, as those of virtual time
// are.
func (h *History) Check() []Violation {
	return h.run(I1, I2, I3, I4, I5, I6, I7, Linear, Precedes, Tokens, Leading, Observations, Healing, Fence, Transfers, Exits, Leftovers)
}

// Judge judges a history of processes: what participants tell comes a moment
// after it was so, changes of the store are told later than they were, and nobody
// knows at which revision anything was told.
func (h *History) Judge() []Violation {
	return h.run(I2, I3, I4, Order, Linear, Precedes, Tokens, Leading, Observations, Healing, Fence, Transfers, Exits, Leftovers)
}

func (h *History) run(checkers ...func(*History) []Violation) []Violation {
	var all []Violation
	for _, check := range checkers {
		all = append(all, check(h)...)
	}
	return all
}

// quietly are the kinds that most of a log is made of, and that say nothing to its
// reader.
var quietly = map[Kind]bool{Sent: true, Acked: true, Trouble: true, Sure: true, Read: true, FenceAccepted: true}

// String is the log and the store's changes in one column of instants; writes
// that went well are left out, as they are most of it and say nothing.
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
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].at < lines[j].at })
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// WriteValue is the value of a guarded write: who holds which token writes, and
// the unique name of the write.
func WriteValue(token int64, name string) string { return fmt.Sprintf("%d %s", token, name) }

// parseWrite is the inverse of WriteValue.
func parseWrite(value string) (token int64, name string, ok bool) {
	n, err := fmt.Sscanf(value, "%d %s", &token, &name)
	return token, name, err == nil && n == 2
}

// ReadValue is the name of the write that made a value, for [Read]. It is an error
// if no write made it.
func ReadValue(value string) (name string, err error) {
	_, name, ok := parseWrite(value)
	if !ok {
		return "", fmt.Errorf("%w: value %q", ErrMalformed, value)
	}
	return name, nil
}
