package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

// ErrInvalid is returned for options that no run can have, before anything is sent.
var ErrInvalid = errors.New("invalid benchmark")

// Scenario is one question that is put to all contenders.
type Scenario struct {
	// Name is what the command line calls it, Summary one line about it.
	Name, Summary string
	// Defaults stand in for options that are not set. Options whose default is
	// empty mean nothing in the scenario.
	Defaults Options
	// Regimes and Metrics explain the words that stand in its results.
	Regimes, Metrics []Term
	// least is the smallest size that makes sense, 0 for any.
	least int
	// without are the contenders that it makes no sense for, and why.
	without map[string]string
	// measure does it.
	measure func(ctx context.Context, r *run) error
}

// Options say how much is measured. What is zero has the scenario's default.
type Options struct {
	// Rounds is how many samples each contender has at each point, after Warmup
	// turns that are thrown away (-1: none).
	Rounds, Warmup int
	// Contenders are who takes part, by name.
	Contenders []string
	// Sizes are the Ns of the scenario, TTLs the leases'.
	Sizes []int
	TTLs  []time.Duration
	// Load is the number of background writes a second, in the regimes that have
	// them.
	Load int
	// Processes is over how many workers candidates and observers are spread; 0
	// means that they live in this process. It needs Site.Spawn.
	Processes int
	// Progress, if set, is called on the measuring goroutine before each turn.
	Progress func(Progress)
}

// usual are the contenders of scenarios that name none. The drop-in does what Eldest does,
// and takes part on request.
var usual = []string{contender.Eldest, contender.Concurrency, contender.Herd, contender.Floor}

// Progress is how far a run has come.
type Progress struct {
	// Contender takes its turn at the point that Regime and N name.
	Contender, Regime string
	N                 int
	// Done of Total turns are over, the warm-up included.
	Done, Total int
}

// scenarios is filled by the files of the scenarios.
var scenarios []Scenario

func scenario(s Scenario) { scenarios = append(scenarios, s) }

// Scenarios returns all of them, by name.
func Scenarios() []Scenario {
	return slices.SortedFunc(slices.Values(scenarios), func(a, b Scenario) int { return strings.Compare(a.Name, b.Name) })
}

// Named returns the scenario of that name.
func Named(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("%w: no scenario %q; there are %s", ErrInvalid, name, strings.Join(names, ", "))
}

// complete returns the options with the scenario's defaults, or an error that wraps
// ErrInvalid.
func (s Scenario) complete(site Site, o Options) (Options, error) {
	d := s.Defaults
	if o.Rounds == 0 {
		o.Rounds = d.Rounds
	}
	switch {
	case o.Warmup < 0:
		o.Warmup = 0
	case o.Warmup == 0:
		o.Warmup = d.Warmup
	}
	if len(o.Contenders) == 0 {
		o.Contenders = d.Contenders
	}
	if len(o.Contenders) == 0 {
		o.Contenders = usual
	}
	if len(o.Sizes) == 0 {
		o.Sizes = d.Sizes
	}
	if len(o.TTLs) == 0 {
		o.TTLs = d.TTLs
	}
	if o.Load == 0 {
		o.Load = d.Load
	}
	if o.Processes == 0 {
		o.Processes = d.Processes
	}
	o.Contenders, o.Sizes, o.TTLs = each(o.Contenders), each(o.Sizes), each(o.TTLs)
	return o, s.check(site, o)
}

// each returns what is different, in the order of its first appearance.
func each[T comparable](all []T) []T {
	var once []T
	for _, x := range all {
		if !slices.Contains(once, x) {
			once = append(once, x)
		}
	}
	return once
}

func (s Scenario) check(site Site, o Options) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrInvalid, s.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case len(site.Client.Endpoints) == 0:
		return invalid("no endpoints")
	case o.Rounds < 1:
		return invalid("%d rounds; want 1 or more", o.Rounds)
	case o.Load < 0 || o.Load > maxLoad:
		return invalid("a load of %d writes a second; want 0 to %d", o.Load, maxLoad)
	case o.Processes < 0:
		return invalid("%d processes; want 0 or more", o.Processes)
	case o.Processes > 0 && site.Spawn == nil:
		return invalid("no processes can be started here")
	}
	for _, name := range o.Contenders {
		if _, err := contender.Named(name); err != nil {
			return invalid("%v", err)
		}
		if why := s.without[name]; why != "" {
			return invalid("not for %s: %s", name, why)
		}
	}
	for _, n := range o.Sizes {
		if least := max(s.least, 1); n < least {
			return invalid("size %d; want %d or more", n, least)
		}
		if len(s.Defaults.Sizes) == 0 {
			return invalid("it has no sizes")
		}
	}
	for _, ttl := range o.TTLs {
		if ttl < time.Second || ttl%time.Second != 0 {
			return invalid("TTL %v; want whole seconds, one or more", ttl)
		}
		if len(s.Defaults.TTLs) == 0 {
			return invalid("it has no TTLs")
		}
	}
	return nil
}
