package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/revision"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// The two elections.
const (
	candidates = "load"
	service    = "load-service"
)

// run is a load in progress, on a cluster with its faults. Its participants are in
// this process, and its history in a file.
type run struct {
	*inject.Field
	scale  Scale
	book   *book
	newest *newest
	record *record
	// close ends all clients of the participants.
	close []func() error

	orders    []chan *way // to each candidate, while it waits in the queue
	toLeader  chan *way
	observers *observers
	nodes     []*node

	samples []Sample
}

// Run puts the load on its own cluster of three members, and judges the result. It blocks for
// Scale.For, and for as long as joining and leaving take. progress is called with a line now and
// then. An error means that the load could not be set up; what is found is in the summary.
func Run(scale Scale, progress func(string)) (*Summary, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	busy := loadAverage()
	field, err := inject.Open(ctx, etcdtest.Config{
		Members: 3, Heartbeat: time.Duration(scale.Heartbeat), Election: time.Duration(scale.Election),
	})
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	defer func() { _ = field.Close() }() // its processes end with this one at the latest
	r := &run{Field: field, scale: scale, book: newBook(), newest: &newest{}, toLeader: make(chan *way)}
	if r.record, err = newRecord(scale.patience()); err != nil {
		return nil, fmt.Errorf("the record: %w", err)
	}
	defer r.record.close()
	// The cluster's own connections, which are there until its end, are no leftovers.
	_, err = r.Leader(ctx)
	for _, cli := range append(r.Each, r.All) {
		_, get := cli.Get(ctx, candidates)
		err = errors.Join(err, get)
	}
	if err != nil {
		return nil, err
	}
	summary := &Summary{Scale: scale, Revision: revision.Here(), LoadAverage: []string{busy}, Empty: weigh(time.Now())}
	begun := time.Now()
	leave, err := r.gather()
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	summary.Joined = since(begun)
	progress(fmt.Sprintf("%d candidates, %d observers and %d nodes have joined after %v", scale.Candidates, scale.Observers, scale.Nodes, time.Duration(summary.Joined)))

	r.load(summary, progress)

	begun = time.Now()
	if err := leave(); err != nil {
		r.book.violation("leaving: %v", err)
	}
	r.leftovers(summary)
	summary.Left = since(begun)
	summary.LoadAverage = append(summary.LoadAverage, loadAverage())
	r.book.judge(r.record) // all hooks have run
	summary.judge(r.book)
	return summary, nil
}

// dial returns n clients that are closed with the load.
func (r *run) dial(n int) ([]*clientv3.Client, error) {
	clients := make([]*clientv3.Client, n)
	for i := range clients {
		cli, err := r.Dial()
		if err != nil {
			return nil, err
		}
		clients[i], r.close = cli, append(r.close, cli.Close)
	}
	return clients, nil
}

// gather makes all participants join, and returns a function that makes them leave and waits for
// it, which must be called also after an error.
func (r *run) gather() (leave func() error, err error) {
	life, stop := context.WithCancel(context.Background())
	var living, joining sync.WaitGroup
	leave = func() error {
		stop()
		living.Wait()
		for _, n := range r.nodes {
			n.end(r.book)
		}
		if r.observers != nil {
			r.observers.close()
		}
		var errs []error
		for _, f := range r.close {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	shared, err := r.dial(r.scale.Clients)
	if err != nil {
		return leave, err
	}
	for range r.scale.Candidates {
		r.orders = append(r.orders, make(chan *way))
	}
	for i := range r.scale.Candidates {
		joining.Add(1)
		living.Go(func() { r.live(life, i, shared[i%len(shared)], joining.Done) })
	}
	joining.Wait()
	watching, err := r.dial(r.scale.Watchers)
	if err == nil {
		err = r.observe(watching)
	}
	if err != nil {
		return leave, err
	}
	serving, err := r.dial(r.scale.Nodes)
	for i, cli := range serving {
		var n *node
		if n, err = r.serve(fmt.Sprintf("node-%d", i), cli); err != nil {
			return leave, err
		}
		r.nodes = append(r.nodes, n)
	}
	return leave, err
}

// load runs all faults and departures for as long as the scale says. After the last fault a
// candidate must lead, and all observers must be notified of it.
func (r *run) load(summary *Summary, progress func(string)) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := time.Now()
	var all sync.WaitGroup
	for _, part := range []func(context.Context){r.order, r.crashLeaders, r.call, r.kill, r.compact, r.converge} {
		all.Go(func() { part(ctx) })
	}
	r.inspect(begun, progress)
	summary.Lasted = since(begun)
	summary.Missed = r.scale.missed(r.book)
	summary.Samples = r.samples
	cancel()
	all.Wait() // until the last burst and the last restart are complete

	begun = time.Now()
	for {
		token, _, leads := r.newest.get()
		if leads {
			r.book.took("a leader after the last fault", time.Since(begun))
			r.told(context.Background(), token)
			return
		}
		if time.Since(begun) > r.scale.patience() {
			r.book.late("no candidate leads for %v after the last fault", r.scale.patience())
			return
		}
		time.Sleep(glance)
	}
}

// kill ends one member after the other with SIGKILL and restarts it with its data, until ctx ends.
// A member that is down then is restarted.
func (r *run) kill(ctx context.Context) {
	for n := range ticks(ctx, r.scale.KillEvery) {
		member := r.Member(n % r.Size())
		if r.Leads(ctx, member.Index, time.Second) {
			r.book.count("members killed that led etcd")
		}
		if err := member.Kill(); err != nil {
			r.book.violation("the harness: a member cannot be killed: %v", err)
			return
		}
		r.book.count("members killed")
		_ = scenario.Sleep(ctx, time.Duration(r.scale.DownFor)) // the end of ctx ends it
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.scale.patience())
		err := member.Restart(back)
		cancel()
		if err != nil {
			r.book.late("the harness: a member does not come back: %v", err)
			return
		}
		r.book.count("members that came back")
	}
}

// compact compacts etcd's history up to the revision of one round ago, as its own automatic
// compaction does, until ctx ends. Without it the members would grow, and a compaction up to the
// present would break every watch.
func (r *run) compact(ctx context.Context) {
	revision := func() int64 { // 0 if etcd does not answer
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		now, _ := r.Revision(short)
		return now
	}
	last := revision()
	for range ticks(ctx, r.scale.KillEvery) {
		now := revision()
		if last > 0 && now > 0 {
			short, cancel := context.WithTimeout(ctx, 10*time.Second)
			if err := r.CompactTo(short, last); err == nil { // it asks again: a member is killed in the same rhythm
				r.book.count("compactions")
			}
			cancel()
		}
		last = max(last, now)
	}
}

// inspect checks everything, again and again, until the load has lasted long enough.
func (r *run) inspect(begun time.Time, progress func(string)) {
	over := func() bool {
		lasted := Span(time.Since(begun))
		return lasted >= max(r.scale.For, r.scale.AtMost) || lasted >= r.scale.For && len(r.scale.missed(r.book)) == 0
	}
	tick := time.NewTicker(time.Duration(r.scale.Inspect))
	defer tick.Stop()
	for !over() {
		<-tick.C
		r.list()
		short, cancel := context.WithTimeout(context.Background(), r.scale.patience())
		r.auditWritten(short)
		cancel()
		s := weigh(begun)
		s.Departures = r.book.counted("departures")
		s.Faults = r.book.counted("campaigns ended by the faults") + r.book.counted("tenures ended by the faults")
		r.samples = append(r.samples, s)
		progress(fmt.Sprintf("%4.0f s: %d departures, %d tenures, %d calls, %d members killed; heap %d MiB, RSS %d MiB (members %d), %d goroutines, cpu %.0f s (members %.0f); %d violations",
			s.At, s.Departures, r.book.counted("tenures"), r.book.counted("calls"), r.book.counted("members killed"),
			s.Heap>>20, s.RSS>>20, s.Members>>20, s.Goroutines, s.Processor, s.MembersProcessor, r.book.violatedSoFar()))
	}
}

// spare is how many goroutines the harness may have more at the end than at the beginning.
const spare = 2

// leftovers waits until everything is deleted, which for participants that crashed is when their
// leases have expired, and records what is left.
func (r *run) leftovers(s *Summary) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*r.scale.patience())
	defer cancel()
	r.auditWritten(ctx)
	if _, err := r.All.Delete(ctx, "/load/", clientv3.WithPrefix()); err != nil { // of unknown outcome
		r.book.late("the harness: cannot clean up: %v", err)
	}
	keys, leases, err := r.Leftovers(ctx, r.scale.patience(), candidates, service)
	if err != nil || len(keys)+len(leases) > 0 {
		r.book.violation("left behind %v after all had left: %d leases, keys: %s; %v", r.scale.patience(), len(leases), strings.Join(keys, ", "), err)
	}
	err = inject.Until(ctx, "no goroutine is left", func(context.Context) (bool, error) {
		s.After = weigh(time.Now())
		return s.After.Goroutines <= s.Empty.Goroutines+spare, nil
	})
	if err != nil {
		r.book.violation("left behind after all had left: %d goroutines", s.After.Goroutines-s.Empty.Goroutines)
	}
}
