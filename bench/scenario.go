package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

// ErrInvalid is returned for invalid options, before any request is sent.
var ErrInvalid = errors.New("invalid benchmark")

// Scenario is one measurement of all contenders.
type Scenario struct {
	// Name is its name on the command line, Summary one line about it.
	Name, Summary string
	// Defaults replace options that are not set. Options whose default is empty have no
	// meaning in the scenario.
	Defaults Options
	// Contenders are its own contenders, in the order in which they take turns; none means those of
	// package contender.
	Contenders []Term
	// InProcess means that everything runs in this process: Options.Processes has no meaning.
	InProcess bool
	// Regimes and Metrics explain the words in its results.
	Regimes, Metrics []Term
	// least is the smallest size that makes sense, 0 for any.
	least int
	// measure panics on errors; see check.
	measure func(r *run)
}

// Term is a contender, a regime or a metric of a scenario.
type Term struct {
	Name string `json:"name"`
	// Text is one line: between which events the metric is counted, or what the regime or the
	// contender is.
	Text string `json:"text"`
	// Better is the good direction of a metric: Lower, Higher, or "" for neither.
	Better string `json:"better,omitempty"`
}

// The good direction of a metric.
const (
	Lower  = "lower"
	Higher = "higher"
)

// Options set how much is measured. Zero values mean the scenario's defaults.
type Options struct {
	// Rounds is how many samples each contender has at each point, after Warmup turns whose samples
	// are discarded (-1: none).
	Rounds, Warmup int
	// Contenders are the names of the contenders that take part.
	Contenders []string
	// Sizes are the Ns of the scenario, TTLs those of the leases.
	Sizes []int
	TTLs  []time.Duration
	// Load is the number of background writes a second, in the regimes that have them.
	Load int
	// For is how long one turn lasts, in the scenarios that count for a fixed time.
	For time.Duration
	// Regimes are the names of the regimes that are measured; none means all.
	Regimes []string
	// Processes is the number of workers over which candidates and observers are spread; 0 means
	// that they are in this process. It needs Site.Worker.
	Processes int
	// Progress, if set, is called on the measuring goroutine before each turn.
	Progress func(Progress)
}

// usual are the contenders of scenarios that do not list any.
var usual = []string{contender.Eldest, contender.Concurrency, contender.Herd, contender.Floor}

// Progress is how much of a run is done.
type Progress struct {
	// Contender is the one that takes its turn, at the point of Regime and N.
	Contender, Regime string
	N                 int
	// Done of Total turns are over, including the warm-up.
	Done, Total int
}

// Scenarios returns all scenarios, by name.
func Scenarios() []Scenario {
	return []Scenario{crash, cut, drain, fanout, footprint, forwarding, guard, handover, heartbeats, herd, join, sessions, standby, suspensions}
}

// Named returns the scenario of that name.
func Named(name string) (Scenario, error) {
	var all []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		all = append(all, s.Name)
	}
	return Scenario{}, fmt.Errorf("%w: no scenario %q; there are %s", ErrInvalid, name, strings.Join(all, ", "))
}

// complete returns the options with the scenario's defaults, or an error that wraps
// ErrInvalid.
func (s Scenario) complete(o Options) (Options, error) {
	d := s.Defaults
	o.Rounds, o.Warmup = cmp.Or(o.Rounds, d.Rounds), max(0, cmp.Or(o.Warmup, d.Warmup))
	o.Load, o.Processes = cmp.Or(o.Load, d.Load), cmp.Or(o.Processes, d.Processes)
	o.Contenders = unique(o.Contenders, d.Contenders, names(s.Contenders), usual)
	o.Sizes, o.TTLs = unique(o.Sizes, d.Sizes), unique(o.TTLs, d.TTLs)
	o.For = cmp.Or(o.For, d.For)
	return o, s.Check(o)
}

// unique returns the first of the lists that is not empty, each value once.
func unique[T comparable](lists ...[]T) (once []T) {
	for _, list := range lists {
		for _, x := range list {
			if !slices.Contains(once, x) {
				once = append(once, x)
			}
		}
		if len(once) > 0 {
			break
		}
	}
	return once
}

// names returns the names of the terms.
func names(terms []Term) (all []string) {
	for _, t := range terms {
		all = append(all, t.Name)
	}
	return all
}

// maxProcesses is more workers than one machine can run beside etcd.
const maxProcesses = 1000

// Check returns an error that wraps ErrInvalid if the options are invalid for the scenario. Run
// does the same.
func (s Scenario) Check(o Options) error {
	var why string
	switch {
	case o.Rounds < 0:
		why = fmt.Sprintf("--rounds %d: want 1 or more", o.Rounds)
	case o.Load < 0 || o.Load > maxLoad:
		why = fmt.Sprintf("--load %d: want 0 to %d writes a second", o.Load, maxLoad)
	case o.Processes < 0:
		why = fmt.Sprintf("--processes %d: want 0 or more", o.Processes)
	case o.Processes > 0 && s.InProcess:
		why = "it has no other processes"
	case o.Processes > maxProcesses:
		why = fmt.Sprintf("--processes %d: want at most %d", o.Processes, maxProcesses)
	case len(o.Sizes) > 0 && len(s.Defaults.Sizes) == 0:
		why = "it has no sizes"
	case len(o.TTLs) > 0 && len(s.Defaults.TTLs) == 0:
		why = "it has no TTLs"
	case o.For < 0:
		why = fmt.Sprintf("--for %v: want more than 0s", o.For)
	case o.For > 0 && s.Defaults.For == 0:
		why = "its turns have no length"
	}
	for _, name := range o.Regimes {
		if !slices.Contains(names(s.Regimes), name) {
			why = fmt.Sprintf("no regime %q", name)
		}
	}
	for _, name := range o.Contenders {
		if own := names(s.Contenders); len(own) == 0 {
			if _, err := contender.Named(name); err != nil {
				why = err.Error()
			}
		} else if !slices.Contains(own, name) {
			why = fmt.Sprintf("no contender %q; there are %s", name, strings.Join(own, ", "))
		}
	}
	for _, n := range o.Sizes {
		if least := max(s.least, 1); n < least {
			why = fmt.Sprintf("--size %d: want %d or more", n, least)
		}
	}
	for _, ttl := range o.TTLs {
		if ttl < time.Second || ttl%time.Second != 0 {
			why = fmt.Sprintf("--ttl %v: want whole seconds, 1s or more", ttl)
		}
	}
	if why != "" {
		return fmt.Errorf("%w: %s: %s", ErrInvalid, s.Name, why)
	}
	return nil
}
