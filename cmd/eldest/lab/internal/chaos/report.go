package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/keys"
)

// Report is what a run has found.
type Report struct {
	Config
	// Rounds counts those that were carried out (Config.Rounds were wanted), Invalid those that prove
	// nothing, of which InvalidBecause says why, a line each; it also tells of whole series.
	Rounds         int      `json:"rounds"`
	Invalid        int      `json:"invalid"`
	InvalidBecause []string `json:"invalid_because"`
	// Interrupted says that somebody ended it.
	Interrupted bool        `json:"interrupted,omitempty"`
	Lines       []FaultLine `json:"faults"`
	Violations  []Violation `json:"violations"`
	// ByInvariant counts violations.
	ByInvariant map[string]int `json:"by_invariant"`
	// Tally adds up those of the series, and Revoked those.
	oracle.Tally
	Revoked int      `json:"revoked_by_keepers,omitempty"`
	Seconds float64  `json:"seconds"`
	Series  []Series `json:"series"`
}

// FaultLine is what there is to say of a fault in a run.
type FaultLine struct {
	Fault Fault `json:"fault"`
	// Injected counts rounds with it, TookEffect those in which it took effect,
	// Unsupported those in which the contender had nothing to do it to; Violations
	// counts the rounds with it in which anything was violated.
	Injected    int `json:"injected"`
	TookEffect  int `json:"struck"`
	Unsupported int `json:"unsupported,omitempty"`
	Violations  int `json:"violations"`
}

// Held reports whether nothing was violated, and everything proved something.
func (r *Report) Held() bool { return len(r.Violations) == 0 && !r.Void() }

// Void reports whether a part of the run proves nothing.
func (r *Report) Void() bool { return len(r.InvalidBecause) > 0 || r.Rounds == 0 && !r.Interrupted }

// Run carries series after series out until there are as many rounds as are wanted, the time is
// over, or ctx ends; the report says what there is until then. It returns an error, and no
// report, only for a Config that makes no run. Whatever it started is gone when it
// returns.
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

// tell reports progress, if that is wanted.
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

// add takes a series into the report.
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

// lack notes why a part of the run proves nothing.
func (r *Report) lack(format string, args ...any) {
	r.InvalidBecause = append(r.InvalidBecause, fmt.Sprintf(format, args...))
}

// What a whole run must have had, where it had the occasion so often that chance does
// not explain its absence. A single series may be without.
const (
	// Half of all stops of leaders are longer than the lease.
	stopsOfLeaders = 20
	// A write is refused in every third round or so.
	roundsWithWrites = 100
	// A leader that goes on after such a stop writes once more, mostly after its successor.
	longStopsWithWrites = 20
	// A successor with heartbeats evicts a leader that is stopped, in every other round or so.
	silences = 8
	// A change of etcd's leader suspends most leaders with heartbeats, and three of five have them.
	etcdsLeaders = 10
	// Every other participant has a keeper.
	killsWithKeepers = 8
)

// prove says what nothing in the run put to the test.
func (r *Report) prove() {
	stops := r.times(Stop, Leader)
	if stops >= stopsOfLeaders && r.LongStops == 0 {
		r.lack("a leader was stopped %d times, and never longer than its lease", stops)
	}
	if r.LongStops >= longStopsWithWrites && r.FencedOff == 0 {
		r.lack("the store outside never saw an older token, after %d stops of leaders longer than their lease", r.LongStops)
	}
	if r.Rounds >= roundsWithWrites && r.Refused == 0 {
		r.lack("no write was refused in %d rounds", r.Rounds)
	}
	silenced := r.times(Silence, Leader)
	if silenced >= silences && r.Evicted == 0 {
		r.lack("a leader with heartbeats was stopped %d times, and never evicted", silenced)
	}
	if etcds := r.times(EtcdKill, Leader) + r.times(EtcdStop, Leader); etcds >= etcdsLeaders && (r.Suspended == 0 || r.Resumed == 0) {
		r.lack("etcd's leader was killed or stopped %d times; %d tenures were suspended, and %d resumed", etcds, r.Suspended, r.Resumed)
	}
	if kills := r.times(Kill, ""); r.heartbeats() && kills >= killsWithKeepers && r.Revoked == 0 {
		r.lack("a participant was killed %d times, and no keeper revoked a lease", kills)
	}
}

// times counts the rounds in which a fault took effect on a role; "": on any.
func (r *Report) times(f Fault, on Role) int {
	n := 0
	for _, s := range r.Series {
		for _, round := range s.Rounds {
			if round.tookEffect(f) && slices.ContainsFunc(round.Injections, func(in Injection) bool { return in.Fault == f && (on == "" || in.On == on) }) {
				n++
			}
		}
	}
	return n
}

func (r Round) tookEffect(f Fault) bool {
	return slices.ContainsFunc(r.Effects, func(e Effect) bool { return e.Fault == f })
}

// count makes the line of each fault that was to occur.
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
				if slices.Contains(round.Unsupported, f) {
					line.Unsupported++
				} else if slices.ContainsFunc(s.Violations, func(v Violation) bool { return v.Round == round.Number }) {
					line.Violations++
				}
			}
		}
		r.Lines = append(r.Lines, line)
	}
}

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
	out.Tally, out.Revoked = h.Tally(), s.revoked(h)
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

// revoked counts the candidates' keys that were deleted so soon after the crash of a participant with a keeper
// that its lease cannot have expired.
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
