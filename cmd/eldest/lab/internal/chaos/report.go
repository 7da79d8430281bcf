package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
)

// Report is the result of a run.
type Report struct {
	Config
	// Rounds counts the rounds that were carried out (Config.Rounds were wanted), Invalid those
	// that prove nothing. InvalidBecause has the reasons, a line each, also those for whole series.
	Rounds         int      `json:"rounds"`
	Invalid        int      `json:"invalid"`
	InvalidBecause []string `json:"invalid_because"`
	// Interrupted means that the caller ended the run.
	Interrupted bool        `json:"interrupted,omitempty"`
	Lines       []FaultLine `json:"faults"`
	Violations  []Violation `json:"violations"`
	// ByInvariant counts violations.
	ByInvariant map[string]int `json:"by_invariant"`
	// Tally is the sum of the series' tallies; so is Revoked.
	oracle.Tally
	Revoked int      `json:"revoked_by_keepers,omitempty"`
	Seconds float64  `json:"seconds"`
	Series  []Series `json:"series"`
}

// FaultLine is the result of a run for one fault.
type FaultLine struct {
	Fault Fault `json:"fault"`
	// Injected counts the rounds with the fault, TookEffect those in which it took effect, and
	// Violations those in which anything was violated.
	Injected   int `json:"injected"`
	TookEffect int `json:"struck"`
	Violations int `json:"violations"`
}

// Held reports whether nothing was violated, and no part of the run proves nothing.
func (r *Report) Held() bool { return len(r.Violations) == 0 && !r.Void() }

// Void reports whether a part of the run proves nothing.
func (r *Report) Void() bool { return len(r.InvalidBecause) > 0 || r.Rounds == 0 && !r.Interrupted }

// Run carries out series after series until there are as many rounds as are wanted, the time is
// over, or ctx ends; the report has the results until then. It returns an error, and no report,
// only for an invalid Config. Everything that it started has ended when it returns.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &Report{
		Config:         cfg,
		InvalidBecause: []string{}, Violations: []Violation{}, ByInvariant: map[string]int{}, Series: []Series{},
		Tally: oracle.Tally{Struck: map[string]int{}},
	}
	begin := time.Now()
	wanted := func(done int) bool {
		return ctx.Err() == nil && (cfg.Rounds == 0 || done < cfg.Rounds) &&
			(cfg.Duration == 0 || time.Since(begin) < cfg.Duration)
	}
	empty := 0 // series in a row without a round
	for seed := cfg.Seed; wanted(r.Rounds) && empty < 3; seed++ {
		before := r.Rounds
		more := func(done int) bool { return done < cfg.SeriesRounds && wanted(before+done) }
		s := runSeries(ctx, cfg, seed, more, func(s *Series, p Plan) { cfg.tell(r, s, p) })
		r.add(s)
		if empty++; len(s.Rounds) > 0 {
			empty = 0
		}
	}
	r.Interrupted = ctx.Err() != nil
	r.Seconds = time.Since(begin).Seconds()
	r.count()
	if !r.Interrupted {
		r.prove()
	}
	return r, nil
}

// tell calls Config.Progress, if it is set.
func (c Config) tell(r *Report, s *Series, p Plan) {
	if c.Progress == nil {
		return
	}
	invalid := r.Invalid
	for _, round := range s.Rounds {
		if round.Invalid != "" {
			invalid++
		}
	}
	c.Progress(Progress{
		Series: s.Seed, Round: p.Number, Text: p.String(), Done: r.Rounds + len(s.Rounds), Total: c.Rounds,
		Violations: len(r.Violations), Invalid: invalid,
	})
}

// add adds a series to the report.
func (r *Report) add(s Series) {
	r.Series = append(r.Series, s)
	r.Rounds += len(s.Rounds)
	for _, round := range s.Rounds {
		if round.Invalid != "" {
			r.Invalid++
			r.lack("seed %d round %d: %s", s.Seed, round.Number, round.Invalid)
		}
	}
	for _, why := range s.Invalid {
		r.lack("seed %d: %s", s.Seed, why)
	}
	for _, v := range s.Violations {
		r.Violations = append(r.Violations, v)
		r.ByInvariant[v.Invariant]++
	}
	r.Add(s.Tally)
	r.Revoked += s.Revoked
}

// lack records why a part of the run proves nothing.
func (r *Report) lack(format string, args ...any) {
	r.InvalidBecause = append(r.InvalidBecause, fmt.Sprintf(format, args...))
}

// Events that a whole run must have had, if it had so many occasions that chance does not explain
// their absence. A single series may lack them.
const (
	// Half of all stops of leaders are longer than the lease.
	stopsOfLeaders = 20
	// A write is refused in about every third round.
	roundsWithWrites = 100
	// A leader that is resumed after such a stop writes once more, mostly after its successor.
	longStopsWithWrites = 20
	// A successor with heartbeats evicts a stopped leader in about every other round.
	silences = 8
	// A change of etcd's leader suspends most leaders with heartbeats, and three of five have them.
	etcdsLeaders = 10
	// Every other participant has a keeper.
	killsWithKeepers = 8
)

// prove records what nothing in the run has tested.
func (r *Report) prove() {
	// lacks records that something never happened although it had so many occasions.
	lacks := func(had, occasions, enough int, format string) {
		if had == 0 && occasions >= enough {
			r.lack(format, occasions)
		}
	}
	lacks(r.LongStops, r.times(Leader, Stop), stopsOfLeaders, "a leader was stopped %d times, and never longer than its lease")
	lacks(r.FencedOff, r.LongStops, longStopsWithWrites, "the external store never received an older token, although leaders were stopped %d times for longer than their lease")
	lacks(r.Refused, r.Rounds, roundsWithWrites, "no write was refused in %d rounds")
	lacks(r.Evicted, r.times(Leader, Silence), silences, "a leader with heartbeats was stopped %d times, and never evicted")
	lacks(min(r.Suspended, r.Resumed), r.times(Leader, EtcdKill, EtcdStop), etcdsLeaders, "etcd's leader was killed or stopped %d times, and no tenure was suspended and resumed")
	if r.heartbeats() {
		lacks(r.Revoked, r.times("", Kill), killsWithKeepers, "a participant was killed %d times, and no keeper revoked a lease")
	}
}

// times counts how often one of the faults took effect on a role; "" means any role.
func (r *Report) times(on Role, faults ...Fault) (n int) {
	for _, s := range r.Series {
		for _, round := range s.Rounds {
			for _, in := range round.Injections {
				if slices.Contains(faults, in.Fault) && round.tookEffect(in.Fault) && (on == "" || in.On == on) {
					n++
				}
			}
		}
	}
	return n
}

func (r Round) tookEffect(f Fault) bool {
	return slices.ContainsFunc(r.Effects, func(e Effect) bool { return e.Fault == f })
}

// count makes the line of each fault that could occur.
func (r *Report) count() {
	r.Lines = []FaultLine{}
	for _, f := range r.Faults {
		line := FaultLine{Fault: f}
		for _, s := range r.Series {
			for _, round := range s.Rounds {
				if !round.has(f) {
					continue
				}
				line.Injected++
				if round.tookEffect(f) {
					line.TookEffect++
				}
				if slices.ContainsFunc(s.Violations, func(v Violation) bool { return v.Round == round.Number }) {
					line.Violations++
				}
			}
		}
		r.Lines = append(r.Lines, line)
	}
}

// Violation is a violation, and where to find it.
type Violation struct {
	// Seed and Round repeat the scenario: a run with that seed, up to that round. Round is 0 if the
	// violation belongs to no single round.
	Seed  uint64 `json:"seed"`
	Round int    `json:"round"`
	// Faults are those of the round.
	Faults    []Fault       `json:"faults"`
	Invariant string        `json:"invariant"`
	At        time.Duration `json:"at"`
	Text      string        `json:"text"`
}

// healing is the invariant that is violated if the election does not settle after a round; the
// oracle uses the same name.
const healing = "healing"

// history returns all that was reported and recorded, in the form that the oracle reads.
func (s *series) history() *oracle.History {
	h := &oracle.History{
		About:  oracle.About{Prefix: keys.Prefix(electionName), Data: dataKey, TTL: s.cfg.TTL, Recovery: s.cfg.Recovery()},
		Events: s.Facts(), Changes: s.recorded.all(),
	}
	h.Events = append(h.Events, takenByEtcd(h, s.resumed)...)
	scenario.Number(h)
	return h
}

// judge judges a series, and keeps its history if necessary. An interrupted series is only checked
// for violations: it need not have proved anything.
func (out *Series) judge(s *series, brokenOff bool) {
	h := s.history()
	out.Tally, out.Revoked = h.Tally(), s.revoked(h)
	for _, v := range h.Judge() {
		out.Violations = append(out.Violations, out.place(v))
	}
	for _, r := range out.Rounds {
		known := func(v Violation) bool { return v.Round == r.Number && v.Invariant == healing }
		if r.Unsettled != "" && !slices.ContainsFunc(out.Violations, known) {
			out.Violations = append(out.Violations, out.place(oracle.Violation{
				Invariant: healing, At: r.Till,
				Text: fmt.Sprintf("the election has not settled %v after all faults were healed: %s", s.cfg.Recovery(), r.Unsettled),
			}))
		}
	}
	if !brokenOff && len(out.Invalid) == 0 {
		out.Invalid = append(out.Invalid, h.Invalid(needs(out.Rounds))...)
	}
	if len(out.Violations) > 0 || s.cfg.Dir != "" {
		var err error
		if out.Kept, err = out.keep(s.cfg, h); err != nil {
			out.Invalid = append(out.Invalid, fmt.Sprintf("the history could not be saved: %v", err))
		}
	}
}

// revoked counts the candidates' keys that were deleted so soon after the crash of a participant
// with a keeper that its lease cannot have expired.
func (s *series) revoked(h *oracle.History) int {
	n := 0
	for _, c := range h.Changes {
		if c.Deleted && slices.ContainsFunc(s.kept, func(k crash) bool {
			return oracle.LeaseOf(c.Key) == k.lease && strings.HasPrefix(c.Key, h.Prefix) && c.At >= k.at && c.At < k.at+s.cfg.TTL/2
		}) {
			n++
		}
	}
	return n
}

// revoking is how long a stopped leader of etcd may revoke leases after it is resumed: until it has
// received the first message, which shows that it has a successor, and its last proposals have been
// applied. It revokes leases that have expired by its own outdated count, even if they have been
// renewed at another member meanwhile (docs/decisions/0016).
const revoking = time.Second

// takenByEtcd returns a removal for each candidate's key that was deleted just after a former
// leader of etcd was resumed, at the instant at which it was resumed. For the library such a key
// was deleted by another client. Keys whose leases had expired are deleted then as well, and
// counting these as removals does no harm.
func takenByEtcd(h *oracle.History, resumed []time.Duration) []oracle.Event {
	var taken []oracle.Event
	for _, c := range h.Changes {
		i := slices.IndexFunc(resumed, func(at time.Duration) bool { return c.At >= at && c.At < at+revoking })
		if i < 0 || !c.Deleted || !strings.HasPrefix(c.Key, h.Prefix) {
			continue
		}
		taken = append(taken, oracle.Event{
			Kind: oracle.Removed, Who: "etcd", At: resumed[i], Token: c.Create, Key: c.Key, Lease: oracle.LeaseOf(c.Key),
			// The lease was renewed, if at all, before the removal, and lasts a TTL at most.
			Until: c.At + h.TTL, Text: "by a former leader of etcd that was resumed",
		})
	}
	return taken
}

// needs returns what a series must have had to prove anything.
func needs(rounds []Round) oracle.Tally {
	n := oracle.Tally{
		Struck:  map[string]int{},
		Tenures: 1, Acked: len(rounds), Reads: len(rounds), Samples: len(rounds), Fenced: len(rounds),
		Queues: len(rounds), Healed: 1,
	}
	for _, r := range rounds {
		if r.Invalid == "" {
			for _, in := range r.Injections {
				n.Struck[string(in.Fault)] = 1
			}
		}
	}
	return n
}

// place finds the round in which, or after which, a violation happened.
func (out *Series) place(v oracle.Violation) Violation {
	found := Violation{Seed: out.Seed, Faults: []Fault{}, Invariant: v.Invariant, At: v.At, Text: v.Text}
	for _, r := range out.Rounds {
		if r.From <= v.At {
			found.Round, found.Faults = r.Number, []Fault{}
			for _, in := range r.Injections {
				found.Faults = append(found.Faults, in.Fault)
			}
		}
	}
	return found
}

// keep writes the history of a series into a directory: in machine-readable form, in readable form,
// and as a picture of the register.
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
