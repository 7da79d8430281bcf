package history

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// History is one run.
type History struct {
	Events  []Event
	Changes []Change
	// Prefix is where the candidates' keys are, with its slash; Data is the key
	// that the leaders write, whose values are [WriteValue].
	Prefix, Data string
	TTL          time.Duration
}

// Violation is one breach of an invariant.
type Violation struct {
	Invariant string // "I1" to "I7"
	At        time.Duration
	Text      string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s violated at %.3fs: %s", v.Invariant, v.At.Seconds(), v.Text)
}

func violated(invariant string, at time.Duration, format string, args ...any) Violation {
	return Violation{Invariant: invariant, At: at, Text: fmt.Sprintf(format, args...)}
}

// Checkers are all of them, in order.
func Checkers() []func(*History) []Violation {
	return []func(*History) []Violation{I1, I2, I3, I4, I5, I6, I7}
}

// Check runs every checker.
func (h *History) Check() []Violation {
	var all []Violation
	for _, check := range Checkers() {
		all = append(all, check(h)...)
	}
	return all
}

// String is the log and the store's changes in one column of instants; writes
// that went well are left out, as they are most of it and say nothing.
func (h *History) String() string {
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	for _, c := range h.Changes {
		if c.Key != h.Data {
			lines = append(lines, line{c.At, c.String()})
		}
	}
	for _, e := range h.Events {
		if e.Kind != Sent && e.Kind != Acked && e.Kind != Trouble {
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
