package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	tokens "github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// The election, and the key that leaders write.
const (
	electionName = "chaos"
	dataKey      = "chaos-data"
)

// etcd's timeouts: short, for leases of a second and quick elections, and long enough for a machine
// on which all of this shares two CPUs.
const (
	heartbeat       = 25 * time.Millisecond
	electionTimeout = 250 * time.Millisecond
)

const (
	startTime = 60 * time.Second
	// effectTime bounds how long a fault may take to show its effect. The longest is a new member:
	// if etcd loses the proposal with which the member publishes itself, as it does in one of some
	// hundred cases on a busy machine, the member proposes again after 5.5 s.
	effectTime = 15 * time.Second
	// healTime bounds the healing of all faults of a round, such as the restart of a member.
	healTime = 30 * time.Second
	// beginTime is how long all processes may take to start, in addition to the recovery time.
	beginTime = 20 * time.Second
	// partingTime bounds the departure of all participants, in addition to three TTLs.
	partingTime = 10 * time.Second
)

// Series is the result of a series.
type Series struct {
	Seed   uint64  `json:"seed"`
	Rounds []Round `json:"rounds"`
	// Violations are those of all rounds.
	Violations []Violation `json:"violations"`
	// Invalid is why the series, apart from single rounds, proves nothing.
	Invalid []string     `json:"invalid,omitempty"`
	Tally   oracle.Tally `json:"tally"`
	// Revoked counts the keys that a keeper has deleted, with the lease, after a crash.
	Revoked int `json:"revoked_by_keepers,omitempty"`
	// Kept is the directory of its history, or "" if it is not kept.
	Kept    string  `json:"kept,omitempty"`
	Seconds float64 `json:"seconds"`
}

// series is a running series: a plan whose steps are rounds. Its history consists of the oracle's
// events, whose instants count from its beginning.
type series struct {
	*inject.Field
	scenario.History[oracle.Event]
	cfg      Config
	seed     uint64
	kept     []crash       // crashes of participants with keepers
	zero     time.Duration // the machine's clock at the beginning
	patience time.Duration // effectTime
	recorded *record
	hosts    []*etcdtest.Host
	resumed  []time.Duration // when members that were stopped as etcd's leaders were resumed

	mu     sync.Mutex
	seats  []*candidate  // the newest process of each participant
	newest tokens.Memory // the newest token of the store outside etcd
	err    error         // why the history is incomplete, or proves nothing
}

// open starts everything. On an error nothing is left running.
func open(ctx context.Context, cfg Config, seed uint64) (*series, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	s := &series{
		cfg: cfg, seed: seed, patience: effectTime, seats: make([]*candidate, cfg.Participants),
		zero: lease.Boot().Now() - time.Nanosecond, // so that no instant is zero
	}
	var err error
	s.Field, err = inject.Open(ctx, etcdtest.Config{
		Members: cfg.Members, Heartbeat: heartbeat, Election: electionTimeout, Command: cfg.Member, Replaceable: true, Died: s.fail,
	})
	if err != nil {
		return nil, err
	}
	s.recorded = newRecord(s.Each, s.now)
	for i := range s.seats {
		if err := s.start(i); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// now returns the time since the beginning, by the clock that all processes share.
func (s *series) now() time.Duration { return lease.Boot().Now() - s.zero }

// tell adds an event to the history, at the current time; note adds text for readers only.
func (s *series) tell(e oracle.Event) {
	e.At = s.now()
	s.Add(e)
}

func (s *series) note(format string, args ...any) {
	s.tell(oracle.Event{Kind: oracle.Fault, Text: fmt.Sprintf(format, args...)})
}

func (s *series) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}

// failed returns why the history is incomplete, or proves nothing.
func (s *series) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.err, s.recorded.err())
}

// runSeries carries out rounds on their own cluster while more returns true, and judges them. begun
// is called before each round.
func runSeries(ctx context.Context, cfg Config, seed uint64, more func(done int) bool, begun func(*Series, Plan)) (out Series) {
	out = Series{Seed: seed, Violations: []Violation{}}
	begin := time.Now()
	defer func() { out.Seconds = time.Since(begin).Seconds() }()
	invalid := func(err error) {
		if err != nil && ctx.Err() == nil { // an interruption is not a reason
			out.Invalid = append(out.Invalid, err.Error())
		}
	}
	s, err := open(ctx, cfg, seed)
	if err != nil {
		invalid(err)
		return out
	}
	invalid(s.perform(ctx, &out, more, begun))
	if err := s.halt(); err != nil {
		// The oracle would report changes as missing that were only not recorded.
		out.Invalid = append(out.Invalid, fmt.Sprintf("the history is incomplete and was not checked: %v", err))
	} else {
		out.judge(s, ctx.Err() != nil)
	}
	invalid(s.close())
	return out
}

// perform carries out the rounds, makes all participants leave, and looks for what they left.
func (s *series) perform(ctx context.Context, out *Series, more func(int) bool, begun func(*Series, Plan)) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	unsettled := ""
	for n := 1; more(n-1) && unsettled == ""; n++ { // later rounds would report the same failure again
		p := Draw(out.Seed, n, s.cfg.Faults, s.cfg.TTL)
		begun(out, p)
		r, err := s.round(ctx, p)
		if ctx.Err() != nil {
			return s.recorded.err() // an interrupted round does not count
		}
		out.Rounds = append(out.Rounds, r)
		if err = errors.Join(err, s.failed()); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		unsettled = r.Unsettled
	}
	if len(out.Rounds) > 0 && unsettled == "" {
		if err := s.rest(ctx); err != nil {
			return err
		}
	}
	return s.part(ctx)
}

// begin blocks until the election has settled for the first time. Processes start slowly on a busy
// machine.
func (s *series) begin(ctx context.Context) error {
	wrong, err := s.settle(ctx, s.now()+beginTime)
	if err == nil && wrong != "" {
		err = fmt.Errorf("the election does not begin: %s", wrong)
	}
	return err
}

// rest waits for the whole recovery time after the last round, so that the oracle itself judges
// that round, and records the queue at its end.
func (s *series) rest(ctx context.Context) error {
	select {
	case <-time.After(s.cfg.Recovery()):
		return s.tellQueue(ctx)
	case <-ctx.Done(): // the series was stopped early, which is no failure
		return nil
	}
}

// part makes all participants leave, and records what they left in etcd: leases and candidates' keys.
// Leases of killed participants may live for their TTL, or a little longer if etcd's leader changed.
func (s *series) part(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, 3*s.cfg.TTL+partingTime)
	defer cancel()
	s.quit(bounded)
	if ctx.Err() != nil {
		return nil
	}
	if err := s.failed(); err != nil {
		return err
	}
	left, leases, err := s.Leftovers(ctx, s.cfg.Recovery(), electionName)
	for _, id := range leases {
		left = append(left, "lease "+id)
	}
	for _, text := range left {
		s.tell(oracle.Event{Kind: oracle.Left, Text: text})
	}
	return err
}

// halt ends the processes that are still running, if the series was interrupted, and blocks until
// all that etcd has committed is recorded: a history that is still growing has an acknowledgement
// without its write.
func (s *series) halt() error {
	for _, c := range s.living() {
		c.expect(killed)
		c.End()
	}
	ctx, cancel := context.WithTimeout(context.Background(), healTime)
	defer cancel()
	rev, err := s.Revision(ctx)
	if err == nil {
		err = s.recorded.reached(ctx, rev)
	}
	s.recorded.end()
	return err
}

func (s *series) close() error {
	for _, c := range s.living() {
		c.expect(killed)
		c.End()
	}
	s.recorded.end()
	var errs []error
	for _, h := range s.hosts {
		errs = append(errs, h.Close())
	}
	return errors.Join(append(errs, s.Close())...)
}

// errGap is returned when history was compacted before it was recorded, or a member omitted changes.
var errGap = errors.New("changes are missing from the record")

// record is what etcd committed: every change of every key, in order, from before the first
// participant to the end. Its methods may be called concurrently.
//
// It watches each member with a separate client, not through the proxies that inject faults.
// Changes that one member cannot report, because it is stopped, partitioned, restarted or replaced,
// are reported by another one: changes are taken by revision, from the member that reports them
// first. As long as a majority is never lost permanently, nothing is missing. Before a compaction
// the record must have reached that revision.
//
// Not guaranteed: the instant of a commit. The recorded one is the arrival of the event, which is later.
type record struct {
	now  func() time.Duration
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	rev     int64            // all changes up to it are recorded
	created map[string]int64 // the create revisions of the existing keys
	changes []oracle.Change
	gap     error // why the record is incomplete
}

// newRecord begins to record a new cluster; clients has a client for each member. The caller must
// end the record before the clients are closed.
func newRecord(clients []*clientv3.Client, now func() time.Duration) *record {
	ctx, cancel := context.WithCancel(context.Background())
	// The store of a new cluster is at revision 1, without any change.
	r := &record{now: now, stop: cancel, rev: 1, created: map[string]int64{}}
	for _, c := range clients {
		r.wg.Go(func() { r.follow(ctx, c) })
	}
	return r
}

func (r *record) end() {
	r.stop()
	r.wg.Wait()
}

// err returns why the record is incomplete, or nil.
func (r *record) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gap
}

func (r *record) all() []oracle.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// wrote reports whether a write of the data key with that token was committed after a revision.
func (r *record) wrote(token, after int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.changes) - 1; i >= 0 && r.changes[i].Rev > after; i-- {
		var by int64
		if _, err := fmt.Sscanf(r.changes[i].Value, "%d", &by); r.changes[i].Key == dataKey && err == nil && by == token {
			return true
		}
	}
	return false
}

// revision returns the revision up to which all changes are recorded.
func (r *record) revision() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rev
}

// reached blocks until all changes up to a revision are recorded, or ctx ends, or there is
// a gap.
func (r *record) reached(ctx context.Context, rev int64) error {
	return inject.Until(ctx, fmt.Sprintf("revision %d is recorded", rev), func(context.Context) (bool, error) {
		err := r.err()
		return err != nil || r.revision() >= rev, err
	})
}

// follow watches one member until ctx ends, starting at the end of the record.
func (r *record) follow(ctx context.Context, c *clientv3.Client) {
	for ctx.Err() == nil {
		watching, cancel := context.WithCancel(ctx)
		for resp := range c.Watch(watching, "", clientv3.WithPrefix(), clientv3.WithRev(r.revision()+1)) {
			if resp.CompactRevision > 0 {
				r.compacted(resp.CompactRevision)
			}
			if resp.Err() != nil {
				break
			}
			r.take(resp.Events)
		}
		cancel()
		select {
		case <-time.After(20 * time.Millisecond): // the member is unavailable
		case <-ctx.Done():
		}
	}
}

// compacted records a gap if a watch began below the oldest revision that is left, unless another
// member has reported the missing changes meanwhile.
func (r *record) compacted(oldest int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rev+1 < oldest && r.gap == nil {
		r.gap = fmt.Errorf("%w: %d follows %d", errGap, oldest, r.rev)
	}
}

// take records the new ones of the events, which must be whole revisions in order.
func (r *record) take(events []*clientv3.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.rev
	for _, ev := range events {
		if ev.Kv.ModRevision <= before {
			continue
		}
		if ev.Kv.ModRevision > r.rev+1 && r.gap == nil { // each revision changes something
			r.gap = fmt.Errorf("%w: %d follows %d", errGap, ev.Kv.ModRevision, r.rev)
		}
		key := string(ev.Kv.Key)
		c := oracle.Change{Rev: ev.Kv.ModRevision, At: r.now(), Key: key, Value: string(ev.Kv.Value), Create: ev.Kv.CreateRevision, Lease: ev.Kv.Lease}
		if c.Deleted = ev.Type == clientv3.EventTypeDelete; c.Deleted {
			c.Create = r.created[key]
			delete(r.created, key)
		} else {
			r.created[key] = c.Create
		}
		r.changes = append(r.changes, c)
		r.rev = c.Rev
	}
}
