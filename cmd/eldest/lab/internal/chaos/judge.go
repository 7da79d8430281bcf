package chaos

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
)

// Violation is one, and where to find it.
type Violation struct {
	// Seed and Round repeat the scenario: a run with that seed, up to that round. 0:
	// it has to do with no single round.
	Seed  uint64 `json:"seed"`
	Round int    `json:"round"`
	// Faults are those of the round.
	Faults    []Fault       `json:"faults"`
	Invariant string        `json:"invariant"`
	At        time.Duration `json:"at"`
	Text      string        `json:"text"`
}

// healing is what a round is called after which the election did not settle; the oracle has the
// same name for it.
const healing = "healing"

// history is all that has been told and recorded, as the oracle reads it.
func (s *series) history() *oracle.History {
	h := &oracle.History{
		About:  oracle.About{Prefix: keys.Prefix(electionName), Data: dataKey, TTL: s.cfg.TTL, Recovery: s.cfg.Recovery()},
		Events: s.Facts(), Changes: s.recorded.all(),
	}
	h.Events = append(h.Events, takenByEtcd(h, s.resumed)...)
	slices.SortStableFunc(h.Events, func(a, b oracle.Event) int { return cmp.Compare(a.At, b.At) })
	for i := range h.Events {
		h.Events[i].Seq = i + 1
	}
	return h
}

// judge has a series judged, and keeps its history if need be. Of one that was broken off only
// violations are found: it need not have proved anything.
func (out *Series) judge(s *series, brokenOff bool) {
	h := s.history()
	out.Tally = h.Tally()
	for _, v := range h.Judge() {
		out.Violations = append(out.Violations, out.place(v))
	}
	for _, r := range out.Rounds {
		known := func(v Violation) bool { return v.Round == r.Number && v.Invariant == healing }
		if r.Unsettled != "" && !slices.ContainsFunc(out.Violations, known) {
			out.Violations = append(out.Violations, out.place(oracle.Violation{
				Invariant: healing, At: r.Till,
				Text: fmt.Sprintf("the election has not settled %v after all had healed: %s", s.cfg.Recovery(), r.Unsettled),
			}))
		}
	}
	if !brokenOff && len(out.Invalid) == 0 {
		out.Invalid = append(out.Invalid, h.Invalid(needs(out.Rounds))...)
	}
	if len(out.Violations) > 0 || s.cfg.KeepAll {
		var err error
		if out.Kept, err = out.keep(s.cfg, h); err != nil {
			out.Invalid = append(out.Invalid, fmt.Sprintf("the history is not kept: %v", err))
		}
	}
}

// revoking is how long after it goes on a leader of etcd that was stopped may revoke
// leases: until it has received news of its successor, which the first message has, and its
// last proposals have been carried out. Such a one revokes by its own old count, whoever has renewed
// leases elsewhere meanwhile (docs/decisions/0016).
const revoking = time.Second

// takenByEtcd returns a removal for each candidate's key that was deleted just after a former
// leader of etcd had gone on, at the instant at which it did. To the library that is a key
// taken away by somebody else; keys whose time had come are deleted then as well, and it does no
// harm to call that a removal.
func takenByEtcd(h *oracle.History, resumed []time.Duration) []oracle.Event {
	var taken []oracle.Event
	for _, c := range h.Changes {
		i := slices.IndexFunc(resumed, func(at time.Duration) bool { return c.At >= at && c.At < at+revoking })
		if i < 0 || !c.Deleted || !strings.HasPrefix(c.Key, h.Prefix) {
			continue
		}
		taken = append(taken, oracle.Event{
			Kind: oracle.Removed, Who: "etcd", At: resumed[i], Token: c.Create, Key: c.Key, Lease: oracle.LeaseOf(c.Key),
			// It was renewed before the removal, if at all, and lasts a TTL at most.
			Until: c.At + h.TTL, Text: "by a former leader of etcd that went on",
		})
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
		if r.Invalid == "" {
			for _, f := range r.supported() {
				n.Struck[string(f)] = 1
			}
		}
	}
	return n
}

// supported are the faults of a round that mean something to the contender.
func (r Round) supported() []Fault {
	faults := []Fault{}
	for _, in := range r.Injections {
		if !slices.Contains(r.Unsupported, in.Fault) {
			faults = append(faults, in.Fault)
		}
	}
	return faults
}

// place finds the round in which, or after which, a violation was.
func (out *Series) place(v oracle.Violation) Violation {
	found := Violation{Seed: out.Seed, Faults: []Fault{}, Invariant: v.Invariant, At: v.At, Text: v.Text}
	for _, r := range out.Rounds {
		if r.From <= v.At {
			found.Round, found.Faults = r.Number, r.supported()
		}
	}
	return found
}

// keep writes the history of a series into a directory: for programs, for people, and as a
// picture of the register.
func (out *Series) keep(cfg Config, h *oracle.History) (dir string, err error) {
	if dir = cfg.Dir; dir == "" {
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
