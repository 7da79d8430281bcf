package peers

import "github.com/eldest-io/eldest/bench"

// The names of the scenarios, in reports and in peer.System.Lacks.
const (
	Handover    = "handover"
	Crash       = "crash"
	Machine     = "machine"
	Stop        = "stop"
	Cut         = "cut"
	Fanout      = "fanout"
	Join        = "join"
	Memory      = "memory"
	Rest        = "rest"
	StoreLeader = "store-leader"
)

// The metrics of the scenarios.
const (
	// Win is the time from the fault, or the call that resigns, to the successor's win.
	Win = "win"
	// TwoLeaders and LateWrites are 0 or 1 in each round.
	TwoLeaders = "two-leaders"
	LateWrites = "late-writes"
	Last       = "last"
	All        = "all"
	Bytes      = "bytes"
	Requests   = "requests"
	Sent       = "sent"
	Writes     = "writes"
	// Unavailable is a time, Moved 0 or 1 in each round.
	Unavailable = "unavailable"
	Moved       = "moved"
)

// Scenario is one thing that is measured of all systems.
type Scenario struct {
	Name, Summary string
	Metrics       []Metric
	// Sized is set if Options.Size applies: the N of its results.
	Sized bool
	// rounds are the default rounds, by the name of the settings.
	rounds map[string]int
}

// Metric is a metric of a scenario, and its unit.
type Metric struct {
	bench.Term
	Unit string
}

var (
	win = Metric{bench.Term{Name: Win, Text: "from the fault to the successor's win", Better: bench.Lower}, bench.Nanoseconds}
	two = Metric{bench.Term{Name: TwoLeaders, Text: "1 for a round in which the client of the old leader reported, after the successor's win, that it leads, else 0; checked every 5 ms", Better: bench.Lower}, bench.Counts}
	// late entries are what a guard prevents.
	late   = Metric{bench.Term{Name: LateWrites, Text: "1 for a round in which the store accepted an entry of the old leader after the first entry of its successor, else 0", Better: bench.Lower}, bench.Counts}
	faults = map[string]int{"shortest": 10, "defaults": 3}
)

// Scenarios are all scenarios, in the order in which they are shown.
var Scenarios = []Scenario{
	{
		Name: Handover, Summary: "the leader resigns", rounds: map[string]int{"shortest": 20, "defaults": 20},
		Metrics: []Metric{{bench.Term{Name: Win, Text: "from the call that resigns to the successor's win", Better: bench.Lower}, bench.Nanoseconds}},
	},
	{Name: Crash, Summary: "the leader's process is killed (SIGKILL)", rounds: faults, Metrics: []Metric{win}},
	{
		Name: Machine, Summary: "the leader's machine fails: its process and its guards end, and its kernel answers nothing",
		rounds: faults, Metrics: []Metric{win},
	},
	{
		Name: Stop, Summary: "the leader's process is stopped (SIGSTOP), and continued after the successor's win",
		rounds: faults, Metrics: []Metric{win, two, late},
	},
	{
		Name: Cut, Summary: "the network of the leader's process is cut both ways, and healed after the successor's win",
		rounds: faults, Metrics: []Metric{win, two, late},
	},
	{
		Name: Fanout, Summary: "the leader resigns: until all observers, in one process, are notified", Sized: true,
		rounds:  map[string]int{"shortest": 3, "defaults": 3},
		Metrics: []Metric{{bench.Term{Name: Last, Text: "from the call that resigns until the last observer is notified of the successor", Better: bench.Lower}, bench.Nanoseconds}},
	},
	{
		Name: Join, Summary: "many candidates of one process join an election that has a leader", Sized: true,
		rounds:  map[string]int{"shortest": 2, "defaults": 2},
		Metrics: []Metric{{bench.Term{Name: All, Text: "from the first call until all candidates are queued, or have failed once where there is no queue", Better: bench.Lower}, bench.Nanoseconds}},
	},
	{
		Name: Memory, Summary: "many candidates of one process wait", Sized: true, rounds: map[string]int{"shortest": 3, "defaults": 3},
		Metrics: []Metric{{bench.Term{Name: Bytes, Text: "heap and stack of a candidate that waits", Better: bench.Lower}, bench.Bytes}},
	},
	{
		Name: Rest, Summary: "a leader and one candidate that waits, at rest", rounds: map[string]int{"shortest": 1, "defaults": 1},
		Metrics: []Metric{
			{bench.Term{Name: Requests, Text: "writes to sockets by both, a minute", Better: bench.Lower}, bench.Counts},
			{bench.Term{Name: Sent, Text: "bytes that both write to sockets, a minute", Better: bench.Lower}, bench.Bytes},
			{bench.Term{Name: Writes, Text: "entries that the servers add to their logs or data, a minute", Better: bench.Lower}, bench.Counts},
		},
	},
	{
		Name: StoreLeader, Summary: "the store's own leader is killed (SIGKILL)", rounds: map[string]int{"shortest": 5, "defaults": 3},
		Metrics: []Metric{
			{bench.Term{Name: Unavailable, Text: "from the kill until the store has accepted an entry that a leader began to append after it", Better: bench.Lower}, bench.Nanoseconds},
			{bench.Term{Name: Moved, Text: "1 for a round in which the leadership moved, else 0", Better: bench.Lower}, bench.Counts},
		},
	},
}

// find returns the scenario of a name.
func find(name string) (Scenario, bool) {
	for _, s := range Scenarios {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
