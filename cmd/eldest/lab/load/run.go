package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/revision"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// The two elections.
const (
	candidates = "load"
	service    = "load-service"
)

// run is a load that is going on.
type run struct {
	scale   Scale
	book    *Book
	line    *line
	record  *record
	cluster *etcdtest.Cluster
	admin   *clientv3.Client
	// close ends all clients but admin.
	close []func() error

	slots    []*slot
	toLeader chan order
	crowd    *crowd
	nodes    []*node

	samples []Sample
}

func (r *run) ttl() time.Duration { return time.Duration(r.scale.TTL) }

// Run puts the load on a cluster of three members of its own, and judges what came of
// it. It blocks for Scale.For, and for as long as joining and leaving take. progress is
// called with a line now and then. The error is that the load could not be brought into
// place; what is found is in the summary.
func Run(scale Scale, progress func(string)) (*Summary, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	busy := loadAverage()
	cluster, err := etcdtest.New(ctx, etcdtest.Config{
		Members: 3, Heartbeat: time.Duration(scale.Heartbeat), Election: time.Duration(scale.Election),
	})
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	defer func() { _ = cluster.Close() }() // its processes end with this one at the latest
	book := newBook()
	r := &run{scale: scale, book: book, line: newLine(), cluster: cluster, toLeader: make(chan order)}
	if r.record, err = newRecord(scale.patience()); err != nil {
		return nil, fmt.Errorf("the record: %w", err)
	}
	defer r.record.close()
	// The cluster's own connections are no leftovers.
	if _, err := cluster.Leader(ctx); err != nil {
		return nil, err
	}
	summary := &Summary{Scale: scale, Revision: revision.Here(), LoadAverage: []string{busy}, Empty: weigh(time.Now())}
	if r.admin, err = cluster.Dial(); err != nil {
		return nil, err
	}
	defer func() { _ = r.admin.Close() }() // once more at the latest
	begun := time.Now()
	leave, err := r.gather()
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	summary.Joined = Span(time.Since(begun).Round(time.Millisecond))
	progress(fmt.Sprintf("%d candidates stand, %d observers watch, %d nodes serve, after %v", scale.Candidates, scale.Observers, scale.Nodes, time.Duration(summary.Joined)))

	r.load(summary, progress)

	begun = time.Now()
	if err := leave(); err != nil {
		book.violation("leaving: %v", err)
	}
	r.leftovers(summary)
	summary.Left = Span(time.Since(begun).Round(time.Millisecond))
	summary.LoadAverage = append(summary.LoadAverage, loadAverage())
	summary.judge(book)
	return summary, nil
}

// dial returns a client that is closed with the load.
func (r *run) dial() (*clientv3.Client, error) {
	cli, err := r.cluster.Dial()
	if err == nil {
		r.close = append(r.close, cli.Close)
	}
	return cli, err
}

// gather brings everybody into place, and returns what sends them home again and waits
// for it, which must be called also after an error.
func (r *run) gather() (leave func() error, err error) {
	life, stop := context.WithCancel(context.Background())
	var living, joining sync.WaitGroup
	leave = func() error {
		stop()
		living.Wait()
		for _, n := range r.nodes {
			n.end(r.book)
		}
		if r.crowd != nil {
			r.crowd.close()
		}
		var errs []error
		for _, f := range r.close {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	shared := make([]*clientv3.Client, r.scale.Clients)
	for i := range shared {
		if shared[i], err = r.dial(); err != nil {
			return leave, err
		}
	}
	for i := range r.scale.Candidates {
		s := &slot{run: r, index: i, client: shared[i%len(shared)], orders: make(chan order)}
		r.slots = append(r.slots, s)
		joining.Add(1)
		living.Go(func() { s.live(life, joining.Done) })
	}
	joining.Wait()
	watching := make([]*clientv3.Client, r.scale.Watchers)
	for i := range watching {
		if watching[i], err = r.dial(); err != nil {
			return leave, err
		}
	}
	if r.crowd, err = gather(r.book, watching, r.scale.Observers); err != nil {
		return leave, err
	}
	for i := range r.scale.Nodes {
		cli, err := r.dial()
		if err != nil {
			return leave, err
		}
		n, err := r.serve(fmt.Sprintf("node-%d", i), cli)
		if err != nil {
			return leave, err
		}
		r.nodes = append(r.nodes, n)
	}
	return leave, nil
}

// load has all the faults and departures go on for as long as the scale says.
func (r *run) load(summary *Summary, progress func(string)) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := time.Now()
	var all sync.WaitGroup
	for _, part := range []func(context.Context){r.conduct, r.crash, r.call, r.kill, r.compact, r.converge} {
		all.Go(func() { part(ctx) })
	}
	r.inspect(begun, progress)
	summary.Lasted = Span(time.Since(begun).Round(time.Millisecond))
	summary.Missed = r.scale.missed(r.book)
	cancel()
	all.Wait() // the last burst, the last member: they end in good order
	r.calm()
	summary.Samples = r.samples
}

// calm holds when no more faults come: somebody leads, and all observers hear of it.
func (r *run) calm() {
	ctx, cancel := context.WithTimeout(context.Background(), r.scale.patience())
	defer cancel()
	begun := time.Now()
	token, err := r.line.leading(ctx)
	if err != nil {
		r.book.late("after the last fault nobody leads for %v", r.scale.patience())
		return
	}
	r.book.took("a leader after the last fault", time.Since(begun))
	r.heard(context.Background(), token)
}

// over reports whether the load has lasted long enough.
func (r *run) over(begun time.Time) bool {
	lasted := Span(time.Since(begun))
	return lasted >= max(r.scale.For, r.scale.AtMost) || lasted >= r.scale.For && len(r.scale.missed(r.book)) == 0
}

// inspect looks at everything, again and again, until the load is over.
func (r *run) inspect(begun time.Time, progress func(string)) {
	tick := time.NewTicker(time.Duration(r.scale.Inspect))
	defer tick.Stop()
	for !r.over(begun) {
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
