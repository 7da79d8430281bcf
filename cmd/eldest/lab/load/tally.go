package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
)

// maxTexts is how many violations are kept in words; all are counted.
const maxTexts = 50

// Book is what a run finds. What it takes does not grow with the run: counts, histograms
// of fixed size, and a bounded number of texts; otherwise the book would be the leak that
// it is there to find.
type Book struct {
	mu         sync.Mutex
	counts     map[string]int64
	errors     map[string]int64
	examples   map[string]string // the first error of each kind
	times      map[string]*times
	violations []string
	violated   int64
	lates      []string
}

func newBook() *Book {
	return &Book{counts: map[string]int64{}, errors: map[string]int64{}, examples: map[string]string{}, times: map[string]*times{}}
}

// Count counts something that happened.
func (b *Book) count(what string) { b.add(what, 1) }

func (b *Book) add(what string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[what] += n
}

func (b *Book) counted(what string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[what]
}

// failed counts an error that reached a caller who had not asked for it. nil counts
// nothing.
func (b *Book) failed(op string, err error) {
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

// violation notes what must never happen.
func (b *Book) violation(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.violated++
	if len(b.violations) < maxTexts {
		b.violations = append(b.violations, fmt.Sprintf(format, args...))
	}
}

// late notes what took too long; see Summary.Late.
func (b *Book) late(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lates) < maxTexts {
		b.lates = append(b.lates, fmt.Sprintf(format, args...))
	}
}

func (b *Book) violatedSoFar() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.violated
}

// took notes how long something took.
func (b *Book) took(what string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.times[what] == nil {
		b.times[what] = newTimes()
	}
	b.times[what].add(d)
}

// report copies all that is in the book into a summary.
func (b *Book) report(s *Summary) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Took = map[string]Took{}
	for what, t := range b.times {
		s.Took[what] = t.summary()
	}
	s.Counts, s.Errors, s.Examples = maps.Clone(b.counts), maps.Clone(b.errors), maps.Clone(b.examples)
	s.Violations, s.Violated = append([]string{}, b.violations...), b.violated
	s.Late = slices.Clone(b.lates)
}

// kinds are the errors that callers are promised, in the order in which an error that
// wraps several is named.
var kinds = []struct {
	err  error
	name string
}{
	{eldest.ErrInvalid, "invalid"},
	{eldest.ErrOutcomeUnknown, "outcome unknown"},
	{eldest.ErrDeposed, "deposed"},
	{eldest.ErrSessionLost, "session lost"},
	{eldest.ErrResigned, "resigned"},
	{eldest.ErrWithdrawn, "withdrawn"},
	{eldest.ErrClosed, "closed"},
	{eldest.ErrNotLeading, "not leading"},
	{eldest.ErrNotRegistered, "not registered"},
	{eldest.ErrCampaigning, "already campaigning"},
	{eldest.ErrLeading, "already leading"},
	{eldest.ErrSilent, "etcd does not answer"},
	{eldest.ErrNoLeader, "nobody leads"},
	{context.DeadlineExceeded, "deadline"},
	{context.Canceled, "cancelled"},
	{rpctypes.ErrNoLeader, "etcd has no leader"},
	{rpctypes.ErrTooManyRequests, "too many requests"},
	{rpctypes.ErrCompacted, "compacted"},
}

// kindOf names an error by its kind; one that has none is named by its text.
func kindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return fmt.Sprint(err) // nil, of an end without a cause, is for the reader to see
}

// times is a histogram of fixed size: up to an hour, in microseconds, with two digits.
type times struct {
	histogram *hdrhistogram.Histogram
	longest   time.Duration
}

func newTimes() *times { return &times{histogram: hdrhistogram.New(1, time.Hour.Microseconds(), 2)} }

func (t *times) add(d time.Duration) {
	t.longest = max(t.longest, d)
	_ = t.histogram.RecordValue(min(d, time.Hour).Microseconds()) // it is in the range
}

// Took says how long something took, in milliseconds.
type Took struct {
	Times int64   `json:"times"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func (t *times) summary() Took {
	ms := func(microseconds int64) float64 { return float64(microseconds) / 1000 }
	longest := t.longest.Microseconds()
	at := func(percent float64) float64 { return ms(min(t.histogram.ValueAtQuantile(percent), longest)) }
	return Took{Times: t.histogram.TotalCount(), P50: at(50), P99: at(99), Max: ms(longest)}
}
