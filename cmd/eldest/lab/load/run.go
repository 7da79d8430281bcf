package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/revision"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/observe"
)

// run is a load in progress, on a cluster with its faults. Its participants are in
// this process, and its history in a file.
type run struct {
	*inject.Field
	scale  Scale
	book   *book
	record *record

	orders   []chan *way // to each candidate, while it waits in the queue
	toLeader chan *way
	leading  atomic.Int32   // how many candidates lead
	seen     []atomic.Int64 // the highest token, by observer
	nodes    []*node

	living sync.WaitGroup // candidates, and what waits for observers
	ends   []func() error // what ends the rest, the last one first

	compactTo int64 // by the next compaction; 0: there is none yet
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
	r := &run{Field: field, scale: scale, book: newBook(), toLeader: make(chan *way), seen: make([]atomic.Int64, scale.Observers)}
	if r.record, err = newRecord(scale.patience()); err != nil {
		return nil, fmt.Errorf("the record: %w", err)
	}
	defer r.record.close()
	// The cluster's own connections, which are there until its end, are no leftovers.
	_, err = r.Leader(ctx)
	for _, client := range append(r.Each, r.All) {
		err = errors.Join(err, etcdtest.Err(client.Get(ctx, candidates)))
	}
	if err != nil {
		return nil, err
	}
	s := &Summary{
		Scale: scale, Revision: revision.Here(), LoadAverage: []string{busy}, Empty: weigh(time.Now()),
		Machine: fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()),
	}
	begun := time.Now()
	life, leave := context.WithCancel(context.Background())
	err = r.gather(life)
	if err == nil {
		s.Joined = since(begun)
		progress(fmt.Sprintf("%d candidates, %d observers and %d nodes have joined after %v", scale.Candidates, scale.Observers, scale.Nodes, time.Duration(s.Joined)))
		r.load(s, progress)
	}
	begun = time.Now()
	leave()
	left := r.end()
	if err != nil {
		return nil, errors.Join(err, left)
	}
	if left != nil {
		r.book.violation("leaving: %v", left)
	}
	r.leftovers(s)
	s.Left = since(begun)
	s.LoadAverage = append(s.LoadAverage, loadAverage())
	r.book.judge(r.record) // all hooks have run
	s.judge(r.book)
	return s, nil
}

func since(begun time.Time) Span { return Span(time.Since(begun).Round(time.Millisecond)) }

// atEnd registers what must be ended when the candidates have left.
func (r *run) atEnd(end func() error) { r.ends = append(r.ends, end) }

// end waits until the candidates have left, and ends the rest.
func (r *run) end() (err error) {
	r.living.Wait()
	for _, end := range slices.Backward(r.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// dial returns n clients that are closed with the load.
func (r *run) dial(n int) ([]*clientv3.Client, error) {
	clients := make([]*clientv3.Client, n)
	for i := range clients {
		client, err := r.Dial()
		if err != nil {
			return nil, err
		}
		clients[i] = client
		r.atEnd(client.Close)
	}
	return clients, nil
}

// gather makes all participants join. They leave when ctx has ended.
func (r *run) gather(ctx context.Context) error {
	shared, err := r.dial(r.scale.Clients)
	if err != nil {
		return err
	}
	r.orders = make([]chan *way, r.scale.Candidates)
	for i := range r.orders {
		r.orders[i] = make(chan *way)
		r.living.Go(func() { r.live(ctx, i, shared[i%len(shared)]) })
	}
	joining, cancel := context.WithTimeout(ctx, r.scale.patience())
	defer cancel()
	err = inject.Until(joining, "all candidates have joined", func(context.Context) (bool, error) {
		return r.book.counted("joins") >= int64(r.scale.Candidates), nil
	})
	if err == nil {
		err = r.watch()
	}
	if err == nil {
		err = r.serve()
	}
	return err
}

// load runs all faults and departures for as long as the scale says. After the last fault a
// candidate must lead, and all observers must be notified of it.
func (r *run) load(s *Summary, progress func(string)) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := time.Now()
	var all sync.WaitGroup
	// Of the ticks that come before the work of the previous one is over, all but one are dropped: a
	// load that cannot be reached must not become a burst later.
	every := func(pause Span, do func()) {
		all.Go(func() {
			tick := time.NewTicker(time.Duration(pause))
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					do()
				case <-ctx.Done():
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(r.scale.Seed, 0xe1de57))
	every(Span(float64(time.Second)/r.scale.PerSecond), func() { r.order(rng) })
	every(r.scale.LeaderCrash, func() {
		select {
		case r.toLeader <- leaderCrash: // the next leader, if no candidate leads
		case <-ctx.Done():
		}
	})
	every(r.scale.CallEvery, r.burst)
	r.compact()
	every(r.scale.KillEvery, func() {
		// At once, while a burst is answered: a compaction would be answered after it.
		killed := r.book.counted("members killed")
		if killed == r.book.counted("members that came back") { // a second one would end the majority
			r.kill(ctx, r.Member(int(killed)%r.Size()))
		}
		r.compact()
	})
	r.inspect(s, begun, progress)
	s.Lasted, s.Missed = since(begun), r.scale.missed(r.book)
	cancel()
	all.Wait() // until the last burst and the last restart are complete

	begun = time.Now()
	led, cancel := context.WithTimeout(context.Background(), r.scale.patience())
	defer cancel()
	err := inject.Until(led, "a candidate leads and all observers know", func(context.Context) (bool, error) {
		return r.leading.Load() > 0 && r.book.counted("convergences") == r.book.counted("tenures"), nil
	})
	if err != nil {
		r.book.late("after the last fault: %v", err)
	}
	r.book.took("a leader after the last fault", time.Since(begun))
}

// inspect checks everything, again and again, until the load has lasted long enough.
func (r *run) inspect(s *Summary, begun time.Time, progress func(string)) {
	over := func() bool {
		lasted := Span(time.Since(begun))
		return lasted >= max(r.scale.For, r.scale.AtMost) || lasted >= r.scale.For && len(r.scale.missed(r.book)) == 0
	}
	tick := time.NewTicker(time.Duration(r.scale.Inspect))
	defer tick.Stop()
	for !over() {
		<-tick.C
		r.list()
		r.auditWritten()
		now := weigh(begun)
		now.Departures = r.book.counted("departures")
		now.Faults = r.book.counted("campaigns ended by the faults") + r.book.counted("tenures ended by the faults")
		s.Samples = append(s.Samples, now)
		progress(fmt.Sprintf("%4.0f s: %d departures, %d tenures, %d calls, %d members killed; heap %d MiB, RSS %d MiB (members %d), %d goroutines, cpu %.0f s (members %.0f); %d violations",
			now.At, now.Departures, r.book.counted("tenures"), r.book.counted("calls"), r.book.counted("members killed"),
			now.Heap>>20, now.RSS>>20, now.Members>>20, now.Goroutines, now.Processor, now.MembersProcessor, r.book.counted("violations")))
	}
}

// call makes a call into the library, and counts its error, which the caller did not expect.
func (r *run) call(op string, do func(context.Context) error) error {
	err := r.timed(op, do)
	r.book.failed(op, err)
	return err
}

// timed makes a call into the library, and records how long it took. One that is stuck is reported
// even if it never returns.
func (r *run) timed(op string, do func(context.Context) error) error {
	patience := r.scale.patience()
	// Before ctx ends: a call that returns because of that was stuck.
	defer time.AfterFunc(patience, func() { r.book.late("stuck: %s for %v", op, patience) }).Stop()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begun := time.Now()
	err := do(ctx)
	r.book.took(op, time.Since(begun))
	return err
}

// harness asks etcd until it answers: a member may have just been killed. It reports whether etcd
// has answered.
func (r *run) harness(what string, ask func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), r.scale.patience())
	defer cancel()
	err := inject.Until(ctx, what, func(context.Context) (bool, error) {
		once, cancel := context.WithTimeout(ctx, 5*time.Second) // some answers are large
		defer cancel()
		err := ask(once)
		return err == nil, err
	})
	if err != nil {
		r.book.late("the harness: %v", err)
	}
	return err == nil
}

// kill ends a member with SIGKILL and restarts it with its data. The end of ctx shortens its absence.
func (r *run) kill(ctx context.Context, m *etcdtest.Member) {
	if r.Leads(ctx, m.Index, time.Second) {
		r.book.count("members killed that led etcd")
	}
	if err := m.Kill(); err != nil {
		r.book.violation("the harness: a member cannot be killed: %v", err)
		return
	}
	r.book.count("members killed")
	_ = retry.Sleep(ctx, time.Duration(r.scale.DownFor)) // the end of ctx ends it
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.scale.patience())
	defer cancel()
	if err := m.Restart(back); err != nil {
		r.book.late("the harness: a member does not come back: %v", err)
		return
	}
	r.book.count("members that came back")
}

// compact compacts etcd's history up to the revision of the last call, as its own automatic
// compaction does. Without it the members would grow, and a compaction up to the present would
// break every watch.
func (r *run) compact() {
	r.harness("the history is compacted", func(ctx context.Context) error {
		now, err := r.Revision(ctx)
		if err == nil && r.compactTo > 0 {
			if err = r.CompactTo(ctx, r.compactTo); err == nil {
				r.book.count("compactions")
			}
		}
		if err == nil {
			r.compactTo = now
		}
		return err
	})
}

// list records the keys in the queue.
func (r *run) list() {
	r.harness("the queue is read", func(ctx context.Context) error {
		e := oracle.Event{Kind: oracle.Queue, At: r.record.now()}
		queue, err := observe.Queue(ctx, r.All, nil, candidates)
		if err != nil {
			return err
		}
		for _, entry := range queue {
			e.Keys = append(e.Keys, entry.Key)
		}
		e.Until = r.record.now()
		r.record.tell(e)
		return nil
	})
}

// auditWritten records what the leaders have written since the last time.
func (r *run) auditWritten() {
	kvs, _ := r.audit(written)
	for _, kv := range kvs {
		// See record.tell for the error.
		_ = r.record.Change(oracle.Change{Rev: kv.ModRevision, Key: string(kv.Key), Create: kv.CreateRevision, Value: string(kv.Value)})
	}
}

// audit returns everything under a prefix, and removes it, so that etcd does not grow with the run.
// What could not be removed is returned again by the next call. It reports whether etcd was read.
func (r *run) audit(prefix string) (kvs []*mvccpb.KeyValue, ok bool) {
	ok = r.harness("what is under "+prefix+" is read", func(ctx context.Context) error {
		resp, err := r.All.Get(ctx, prefix, clientv3.WithPrefix())
		if err == nil {
			kvs = resp.Kvs
		}
		return err
	})
	for some := range slices.Chunk(kvs, 100) { // a transaction has at most 128 operations
		ops := make([]clientv3.Op, 0, len(some))
		for _, kv := range some {
			ops = append(ops, clientv3.OpDelete(string(kv.Key)))
		}
		r.harness("what is under "+prefix+" is removed", func(ctx context.Context) error {
			return etcdtest.Err(r.All.Txn(ctx).Then(ops...).Commit())
		})
	}
	return kvs, ok
}

// spare is how many goroutines the harness may have more at the end than at the beginning.
const spare = 2

// leftovers waits until everything is deleted, which for participants that crashed is when their
// leases have expired, and records what is left.
func (r *run) leftovers(s *Summary) {
	r.auditWritten()
	r.harness("the service's data is deleted", func(ctx context.Context) error {
		return errors.Join(etcdtest.Err(r.All.Delete(ctx, space.Data(""), clientv3.WithPrefix())),
			etcdtest.Err(r.All.Delete(ctx, space.Trail(), clientv3.WithPrefix())))
	})
	ctx, cancel := context.WithTimeout(context.Background(), 2*r.scale.patience())
	defer cancel()
	keys, leases, err := r.Leftovers(ctx, r.scale.patience(), candidates, service.Election)
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
