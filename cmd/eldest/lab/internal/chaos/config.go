package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
)

// ErrInvalid is returned for an invalid Config; nothing was started.
var ErrInvalid = errors.New("invalid run")

// Limits of Config.
const (
	// MaxParticipants is the maximum number of processes on one machine: with more, the test would
	// measure the machine.
	MaxParticipants = 100
	// MaxTTL bounds the waiting times of a round.
	MaxTTL = time.Minute
)

// Contenders are the elections that can be tested: those that applications would use.
var Contenders = []string{contender.Eldest, contender.Concurrency, contender.DropIn}

// Config describes a run.
type Config struct {
	// Contender is the implementation under test, one of Contenders.
	Contender string `json:"contender"`
	// Seed is the seed of the first series; each further series has the next one.
	Seed uint64 `json:"seed"`
	// Rounds is the maximum number of rounds, Duration is for how long new rounds begin; if one of
	// them is 0, the other one decides.
	Rounds   int           `json:"rounds_wanted,omitempty"`
	Duration time.Duration `json:"-"`
	// SeriesRounds is the number of rounds with one cluster.
	SeriesRounds int `json:"series_rounds"`
	// Members is 1, 3 or 5; Participants 2 to MaxParticipants.
	Members      int `json:"members"`
	Participants int `json:"participants"`
	// Faults are those that may be drawn.
	Faults []Fault `json:"-"`
	// TTL is the TTL of the leases, in whole seconds, up to MaxTTL.
	TTL time.Duration `json:"ttl"`
	// Dir is where the histories of all series are kept; "" means only those with a violation, in a
	// temporary directory.
	Dir string `json:"-"`
	// Without is one of participant.Rules, for tests of chaos itself: no participant follows it.
	Without string `json:"-"`

	// Executable is the program of the participants: see participant.Launch. Member is the command line
	// of a member, to which the member's flags are appended.
	Executable string   `json:"-"`
	Member     []string `json:"-"`
	// Progress, if set, is called before each round. It must not block.
	Progress func(Progress) `json:"-"`
}

// Progress is the progress of a run.
type Progress struct {
	Series uint64 // its seed
	Round  int    // in the series
	Text   string // the round's faults
	// Done and Total count rounds; Total is 0 if only Duration limits the run.
	Done, Total         int
	Violations, Invalid int
}

// Recovery is the time after the faults within which there must be a leader and a correct queue. It
// includes an eviction, as the timeouts of heartbeats are less than the TTL.
func (c Config) Recovery() time.Duration { return c.TTL + 3*time.Second }

// Check refuses an invalid Config. The error wraps ErrInvalid.
func (c Config) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
	switch {
	case !slices.Contains(Contenders, c.Contender):
		return bad("unknown contender %q; want one of %s", c.Contender, strings.Join(Contenders, ", "))
	case c.Rounds < 0:
		return bad("--rounds %d: want 0 or more", c.Rounds)
	case c.Duration < 0:
		return bad("--duration %v: want more than 0s", c.Duration)
	case c.Rounds == 0 && c.Duration == 0:
		return bad("--rounds 0 needs a --duration")
	case c.SeriesRounds < 1:
		return bad("--series %d: want 1 or more", c.SeriesRounds)
	case !slices.Contains([]int{1, 3, 5}, c.Members):
		return bad("--members %d: want 1, 3 or 5", c.Members)
	case c.Participants < 2 || c.Participants > MaxParticipants:
		return bad("--participants %d: want 2 to %d", c.Participants, MaxParticipants)
	case c.TTL < time.Second || c.TTL > MaxTTL || c.TTL%time.Second != 0:
		return bad("--ttl %v: want whole seconds, 1s or more, up to %v", c.TTL, MaxTTL)
	case len(c.Faults) == 0:
		return bad("no faults")
	case c.Without != "" && !slices.Contains(participant.Rules, c.Without):
		return bad("unknown rule %q; want one of %s", c.Without, strings.Join(participant.Rules, ", "))
	}
	for _, f := range c.Faults {
		if !slices.Contains(NamesFor(c.Contender), f) {
			return bad("%s is for participants with %s, which those of %s do not have", f, kindOf(f).needs, c.Contender)
		}
	}
	if c.Members == 1 {
		for _, f := range c.Faults {
			if NeedsPeers(f) {
				return bad("%s requires more than one member", f)
			}
		}
	}
	return nil
}
