package load

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/hooks"
)

// The verdicts.
const (
	// Held means that the load was reached and nothing was violated.
	Held = "held"
	// Violated means that something happened which must not.
	Violated = "violated"
	// Invalid means that the load was not reached, so that the run proves nothing.
	Invalid = "INVALID"
)

// Summary is the result of a run.
type Summary struct {
	Verdict    string   `json:"verdict"`
	Violations []string `json:"violations"`
	// Violated counts them; the texts are the first of them.
	Violated int64    `json:"violations_total"`
	Missed   []string `json:"load_missed,omitempty"`
	// Late is what took longer than anything may. It is a violation, unless the load was not
	// reached: times on an overloaded machine prove nothing.
	Late []string `json:"late,omitempty"`

	Scale       Scale    `json:"scale"`
	Revision    string   `json:"revision"`
	Machine     string   `json:"machine"`
	LoadAverage []string `json:"load_average_before_and_after"`
	Joined      Span     `json:"joining_took"`
	Lasted      Span     `json:"load_lasted"`
	Left        Span     `json:"leaving_took"`

	// Counts has all counters; they continue while participants leave.
	Counts map[string]int64 `json:"counts"`
	// Errors are those that reached callers unexpectedly, by kind, and Examples the first of each
	// kind.
	Errors   map[string]int64  `json:"errors_reaching_callers"`
	Examples map[string]string `json:"errors_examples"`
	Took     map[string]Took   `json:"took"`

	Heap       Flat `json:"heap"`
	RSS        Flat `json:"rss"`
	Goroutines Flat `json:"goroutines"`
	// Empty and After are this process before any participant has joined, and after all have left.
	Empty   Sample   `json:"before_anybody_joined"`
	After   Sample   `json:"after_all_have_left"`
	Samples []Sample `json:"samples"`
}

// judge gives the verdict.
func (s *Summary) judge(b *book) {
	s.Heap = flat(s.Samples, func(p Sample) int64 { return p.Heap })
	s.RSS = flat(s.Samples, func(p Sample) int64 { return p.RSS })
	s.Goroutines = flat(s.Samples, func(p Sample) int64 { return p.Goroutines })
	for what, f := range map[string]Flat{"heap": s.Heap, "RSS": s.RSS, "goroutines": s.Goroutines} {
		if f.Grew() {
			b.violation("not flat: %s grew by %.1f %%, from %d to %d", what, 100*f.Change, f.Second, f.Last)
		}
	}
	s.Machine = fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	b.report(s)
	if len(s.Missed) == 0 {
		s.Violations, s.Violated = append(s.Violations, s.Late...), s.Violated+int64(len(s.Late))
	}
	switch {
	case s.Violated > 0:
		s.Verdict = Violated
	case len(s.Missed) > 0:
		s.Verdict = Invalid
	default:
		s.Verdict = Held
	}
}

// maxTexts is how many violations are kept as texts; all are counted.
const maxTexts = 50

// book has the findings of a run. Its size does not grow with the run: counts, histograms of fixed
// size, and a bounded number of texts; otherwise the book would be the leak that it must find.
type book struct {
	mu         sync.Mutex
	counts     map[string]int64
	errors     map[string]int64
	examples   map[string]string // the first error of each kind
	times      map[string]*hdrhistogram.Histogram
	violations []string
	violated   int64
	lates      []string
}

func newBook() *book {
	return &book{counts: map[string]int64{}, errors: map[string]int64{}, examples: map[string]string{}, times: map[string]*hdrhistogram.Histogram{}}
}

func (b *book) count(what string) { b.add(what, 1) }

func (b *book) add(what string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[what] += n
}

func (b *book) counted(what string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[what]
}

// failed counts an error that reached a caller unexpectedly. nil counts nothing.
func (b *book) failed(op string, err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := op + ": " + kindOf(err)
	if b.errors[kind]++; b.errors[kind] == 1 {
		b.examples[kind] = err.Error()
	}
}

func (b *book) violation(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.violated++
	if len(b.violations) < maxTexts {
		b.violations = append(b.violations, fmt.Sprintf(format, args...))
	}
}

// late records what took too long; see Summary.Late.
func (b *book) late(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lates) < maxTexts {
		b.lates = append(b.lates, fmt.Sprintf(format, args...))
	}
}

func (b *book) violatedSoFar() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.violated
}

// longest is the value as which longer times are counted.
const longest = 4 * time.Hour

// took records how long something took, in microseconds with two significant digits.
func (b *book) took(what string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.times[what] == nil {
		b.times[what] = hdrhistogram.New(1, longest.Microseconds(), 2)
	}
	_ = b.times[what].RecordValue(min(d, longest).Microseconds()) // it is in the range
}

// Took has the distribution of a duration, in milliseconds.
type Took struct {
	Times int64   `json:"times"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func (b *book) report(s *Summary) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Took = map[string]Took{}
	for what, h := range b.times {
		ms := func(microseconds int64) float64 { return float64(microseconds) / 1000 }
		s.Took[what] = Took{h.TotalCount(), ms(h.ValueAtQuantile(50)), ms(h.ValueAtQuantile(99)), ms(h.Max())}
	}
	s.Counts, s.Errors, s.Examples = maps.Clone(b.counts), maps.Clone(b.errors), maps.Clone(b.examples)
	s.Violations, s.Violated = append([]string{}, b.violations...), b.violated
	s.Late = slices.Clone(b.lates)
}

// kindOf names an error by its kind, or by its text if it has no kind.
func kindOf(err error) string {
	for kind, name := range map[error]string{
		eldest.ErrOutcomeUnknown: "outcome unknown", eldest.ErrUnavailable: "etcd does not answer", rpctypes.ErrNoLeader: "etcd has no leader",
	} {
		if errors.Is(err, kind) {
			return name
		}
	}
	if name := hooks.Cause(err); slices.Contains(hooks.Causes()[:len(hooks.Causes())-1], name) {
		return strings.ReplaceAll(name, "_", " ")
	}
	return fmt.Sprint(err) // nil, of an end without a cause, is shown to the reader
}
