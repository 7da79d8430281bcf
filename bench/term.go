package bench

// Term is a word of a scenario's that stands in its results: a regime or a metric, and
// what it means.
type Term struct {
	Name string `json:"name"`
	// Text is one line: what the metric counts from and to, or what the regime's
	// circumstances are.
	Text string `json:"text"`
	// Better says which direction of a metric is good: Lower, Higher, or neither.
	Better string `json:"better,omitempty"`
}

// Which direction is good.
const (
	Lower  = "lower"
	Higher = "higher"
)
