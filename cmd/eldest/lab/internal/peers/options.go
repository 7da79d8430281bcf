package peers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// ErrInvalid is returned for invalid options, before anything is started.
var ErrInvalid = errors.New("invalid options")

// Defaults of options.
const (
	DefaultSize = 1000
	// DefaultFor is a minute, because some clients send only every 20 seconds.
	DefaultFor = time.Minute
)

// maxSize is how many candidates or observers one process can have.
const maxSize = 100_000

// Options say what is measured. All that is not set has its default.
type Options struct {
	// Systems are those that are measured, in the order in which they are shown.
	Systems []peer.System
	// Scenarios and Settings are names; none means all.
	Scenarios, Settings []string
	// Rounds is how many samples each system has in each scenario; 0 means each scenario's default.
	Rounds int
	// Size is how many candidates or observers there are in the scenarios that have many.
	Size int
	// For is how long the scenario Rest counts.
	For time.Duration
	// Executable is this program: its "bench peers-participant" calls Participate, its "bench peers-server"
	// the servers that are Go libraries, and its "etcd member" a member of etcd.
	Executable string
	// Dir is where the data is; "" means in memory, if there is such a file system, else on disk.
	Dir string
	// Progress, if set, is called before each turn, from any goroutine. It must not block. The contender is a system,
	// the regime a scenario with the settings.
	Progress func(bench.Progress)
	// Skip, if set, is called when a system is not installed, from any goroutine.
	Skip func(Skipped)
}

// complete returns the options with their defaults, or an error that wraps ErrInvalid.
func (o Options) complete() (Options, error) {
	o.Size, o.For = cmp.Or(o.Size, DefaultSize), cmp.Or(o.For, DefaultFor)
	if len(o.Settings) == 0 {
		o.Settings = peer.SettingNames
	}
	var all []string
	for _, s := range Scenarios {
		all = append(all, s.Name)
	}
	if len(o.Scenarios) == 0 {
		o.Scenarios = all
	}
	for _, name := range o.Scenarios {
		if _, ok := find(name); !ok {
			return o, fmt.Errorf("%w: no scenario %q; there are %s", ErrInvalid, name, strings.Join(all, ", "))
		}
	}
	for _, name := range o.Settings {
		if !slices.Contains(peer.SettingNames, name) {
			return o, fmt.Errorf("%w: no settings %q; there are %s", ErrInvalid, name, strings.Join(peer.SettingNames, ", "))
		}
	}
	switch {
	case o.Rounds < 0:
		return o, fmt.Errorf("%w: %d rounds: want 1 or more", ErrInvalid, o.Rounds)
	case o.Size < 1 || o.Size > maxSize:
		return o, fmt.Errorf("%w: size %d: want 1 to %d", ErrInvalid, o.Size, maxSize)
	case o.For < time.Second:
		return o, fmt.Errorf("%w: %v: want 1s or more", ErrInvalid, o.For)
	}
	return o, nil
}

// Check returns an error that wraps ErrInvalid if the options are invalid. Run does the same, and also if there
// are no systems.
func (o Options) Check() error {
	_, err := o.complete()
	return err
}

// wants reports whether a scenario is measured.
func (o Options) wants(scenario string) bool { return slices.Contains(o.Scenarios, scenario) }

// rounds returns how many rounds a scenario has.
func (o Options) rounds(s Scenario, setting string) int { return cmp.Or(o.Rounds, s.rounds[setting]) }

// total returns how many turns there are at most.
func (o Options) total() (n int) {
	for _, s := range Scenarios {
		for _, setting := range o.Settings {
			if o.wants(s.Name) {
				n += o.rounds(s, setting) * len(o.Systems)
			}
		}
	}
	return n
}
