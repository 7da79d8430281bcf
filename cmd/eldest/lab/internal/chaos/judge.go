package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Violation is one, and where to find it.
type Violation struct {
	// Seed and Round repeat the scenario: a run with that seed, up to that round. 0:
	// it has to do with no single round.
	Seed  uint64 `json:"seed"`
	Round int    `json:"round"`
	// Faults are those of the round.
	Faults    []plan.Fault  `json:"faults"`
	Invariant string        `json:"invariant"`
	At        time.Duration `json:"at"`
	Text      string        `json:"text"`
}

// settling is what the referee calls a round after which the election did not come to
// rest; the oracle has the same name for it.
const settling = "healing"

// judge reads what everybody has written down, has it judged, and keeps it if need be.
// Of one that was broken off only violations are found: it need not have proved anything.
func (out *Series) judge(s *stage, brokenOff bool) {
	h, err := load(s.files())
	if err != nil {
		out.Invalid = append(out.Invalid, err.Error())
		return
	}
	h.Events = append(h.Events, takenByEtcd(h, s.field.Resumed())...)
	slices.SortStableFunc(h.Events, func(a, b oracle.Event) int { return cmp.Compare(a.At, b.At) })
	for i := range h.Events {
		h.Events[i].Seq = i + 1
	}
	out.Tally = h.Tally()
	for _, v := range h.Judge() {
		out.Violations = append(out.Violations, out.place(v))
	}
	for _, r := range out.Rounds {
		if r.Unsettled != "" && !out.unsettledIn(r.Number) {
			out.Violations = append(out.Violations, out.place(oracle.Violation{
				Invariant: settling, At: r.Till,
				Text: fmt.Sprintf("the election has not come to rest %v after all had healed: %s", s.cfg.Recovery(), r.Unsettled),
			}))
		}
	}
	if !brokenOff && len(out.Invalid) == 0 {
		out.Invalid = append(out.Invalid, h.Invalid(needs(out.Rounds))...)
	}
	if len(out.Violations) > 0 || s.cfg.KeepAll {
		if out.Kept, err = keep(s.cfg, out, h); err != nil {
			out.Invalid = append(out.Invalid, fmt.Sprintf("the history is not kept: %v", err))
		}
	}
}

// revoking is how long after it goes on a leader of etcd that was stopped may revoke
// leases: until it has heard of its successor, which the first message tells it, and its
// last proposals have been carried out.
const revoking = time.Second

// takenByEtcd returns a removal for each candidate's key that went just after a former
// leader of etcd had gone on, at the instant at which it did. To the library that is a key
// taken away by somebody else; keys whose time had come go then as well, and it does no
// harm to call that a removal.
func takenByEtcd(h *oracle.History, resumed []time.Duration) []oracle.Event {
	var taken []oracle.Event
	for _, c := range h.Changes {
		if !c.Deleted || !strings.HasPrefix(c.Key, h.Prefix) {
			continue
		}
		for _, at := range resumed {
			if c.At >= at && c.At < at+revoking {
				taken = append(taken, oracle.Event{
					Kind: oracle.Removed, Who: "etcd", At: at, Token: c.Create, Key: c.Key, Lease: oracle.LeaseOf(c.Key),
					// It was renewed before the removal, if at all, and lasts a TTL at most.
					Until: c.At + h.TTL, Text: "by a former leader of etcd that went on",
				})
				break
			}
		}
	}
	return taken
}

// needs is what a series must have had to prove anything.
func needs(rounds []Round) oracle.Tally {
	n := oracle.Tally{
		Struck:  map[string]int{},
		Tenures: 1, Acked: len(rounds), Reads: len(rounds), Samples: len(rounds), Fenced: len(rounds),
		Queues: len(rounds), Healed: 1,
	}
	for _, r := range rounds {
		if r.Invalid != "" {
			continue
		}
		for _, strike := range r.Strikes {
			if !slices.Contains(r.Unsupported, strike.Fault) {
				n.Struck[string(strike.Fault)] = 1
			}
		}
	}
	return n
}

// place finds the round in which, or after which, a violation was.
func (out *Series) place(v oracle.Violation) Violation {
	found := Violation{Seed: out.Seed, Faults: []plan.Fault{}, Invariant: v.Invariant, At: v.At, Text: v.Text}
	for _, r := range out.Rounds {
		if r.From <= v.At {
			found.Round = r.Number
			found.Faults = []plan.Fault{}
			for _, s := range r.Strikes {
				if !slices.Contains(r.Unsupported, s.Fault) {
					found.Faults = append(found.Faults, s.Fault)
				}
			}
		}
	}
	return found
}

func (out *Series) unsettledIn(round int) bool {
	return slices.ContainsFunc(out.Violations, func(v Violation) bool { return v.Round == round && v.Invariant == settling })
}

func load(files []string) (h *oracle.History, err error) {
	var readers []io.Reader
	for _, name := range files {
		f, openErr := os.Open(name)
		if errors.Is(openErr, os.ErrNotExist) {
			continue // it was killed before it began to tell
		}
		if openErr != nil {
			return nil, openErr
		}
		defer func() { _ = f.Close() }() // it was only read
		readers = append(readers, f)
	}
	return oracle.Load(readers...)
}

// keep writes the history of a series into a directory: for programs, for people, and as a
// picture of the register.
func keep(cfg Config, out *Series, h *oracle.History) (dir string, err error) {
	dir = cfg.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "eldest-chaos-"); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(dir, fmt.Sprintf("%s-%d", cfg.Contender, out.Seed))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	found := ""
	for _, v := range out.Violations {
		found += fmt.Sprintf("round %d: %s violated at %.3fs: %s\n", v.Round, v.Invariant, v.At.Seconds(), v.Text)
	}
	return dir, h.Keep(dir, found)
}
