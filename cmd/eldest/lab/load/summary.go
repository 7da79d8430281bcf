package load

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

// Took has the distribution of a duration, in milliseconds.
type Took struct {
	Times int64   `json:"times"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
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
