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

// book is what a run finds. What it takes does not grow with the run: counts, histograms
// of fixed size, and a bounded number of texts; otherwise the book would be the leak that
// it is there to find.
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

// count counts something that happened.
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

// failed counts an error that reached a caller who had not asked for it. nil counts
// nothing.
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

// violation notes what must never happen.
func (b *book) violation(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.violated++
	if len(b.violations) < maxTexts {
		b.violations = append(b.violations, fmt.Sprintf(format, args...))
	}
}

// late notes what took too long; see Summary.Late.
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

// longest is what a time is counted as that is longer.
const longest = 4 * time.Hour

// took notes how long something took, in microseconds with two digits.
func (b *book) took(what string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.times[what] == nil {
		b.times[what] = hdrhistogram.New(1, longest.Microseconds(), 2)
	}
	_ = b.times[what].RecordValue(min(d, longest).Microseconds()) // it is in the range
}

// Took says how long something took, in milliseconds.
type Took struct {
	Times int64   `json:"times"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// report copies all that is in the book into a summary.
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
