package load

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/hooks"
)

// book has the findings of a run. Its size does not grow with the run: counts, histograms of fixed
// size, and a bounded number of texts; otherwise the book would be the leak that it must find.
type book struct {
	mu         sync.Mutex
	counts     map[string]int64
	errors     map[string]int64
	examples   map[string]string
	times      map[string]*hdrhistogram.Histogram
	violations []string // the first of them
	lates      []string
}

func newBook() *book {
	return &book{
		counts: map[string]int64{}, errors: map[string]int64{}, examples: map[string]string{},
		times: map[string]*hdrhistogram.Histogram{}, violations: []string{},
	}
}

// texts is how many violations, and how much else that is late, are kept as texts.
const texts = 50

// violation records something that must not happen.
func (b *book) violation(format string, args ...any) {
	b.count("violations")
	b.keep(&b.violations, format, args)
}

// late records what took too long; see Summary.Late.
func (b *book) late(format string, args ...any) { b.keep(&b.lates, format, args) }

func (b *book) keep(in *[]string, format string, args []any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(*in) < texts {
		*in = append(*in, fmt.Sprintf(format, args...))
	}
}

func (b *book) count(name string) { b.add(name, 1) }

func (b *book) add(name string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[name] += n
}

func (b *book) counted(name string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[name]
}

// failed counts an error that reached the caller of an operation unexpectedly; nil is none.
func (b *book) failed(op string, err error) {
	if err == nil {
		return
	}
	kind := op + ": " + kindOf(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.errors[kind]++; b.errors[kind] == 1 {
		b.examples[kind] = err.Error()
	}
}

// kinds are the errors with names of their own. The first one that an error wraps counts: a session
// is also lost because etcd does not answer.
var kinds = []struct {
	err  error
	name string
}{
	{eldest.ErrOutcomeUnknown, "outcome unknown"}, {eldest.ErrSessionLost, "session lost"},
	{rpctypes.ErrNoLeader, "etcd has no leader"},
}

// kindOf names an error by its kind, or by its text if it has no kind.
func kindOf(err error) string {
	for _, kind := range kinds {
		if errors.Is(err, kind.err) {
			return kind.name
		}
	}
	if hooks.Trouble(err) == "no_answer" {
		return "etcd does not answer"
	}
	if name := hooks.Cause(err); name != hooks.Cause(nil) {
		return strings.ReplaceAll(name, "_", " ")
	}
	return fmt.Sprint(err) // nil, of an end without a cause, is shown to the reader
}

// longest is the value as which longer times are counted.
const longest = 4 * time.Hour

// took records how long something took, in microseconds with two significant digits.
func (b *book) took(what string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.times[what]
	if h == nil {
		h = hdrhistogram.New(1, longest.Microseconds(), 2)
		b.times[what] = h
	}
	_ = h.RecordValue(min(d, longest).Microseconds()) // it is in the range
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
	s.Violations, s.Violated = slices.Clone(b.violations), b.counts["violations"]
	s.Late = slices.Clone(b.lates)
}
