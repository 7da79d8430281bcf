package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Site is the cluster that is measured, and its environment. Client.Endpoints is required; other
// fields may be nil or 0 where they are unknown.
type Site struct {
	// Client is the template of every client: endpoints, credentials, timeouts.
	Client clientv3.Config
	// Members is the number of the cluster's members, Version its etcd version, and Storage where
	// it keeps its data; all three are for the report only.
	Members int
	Version string
	Storage string
	// Metrics reads the servers' metrics, added up over all members. The keys are
	// the names of the series, without labels.
	Metrics func(ctx context.Context) (map[string]float64, error)
	// KillLeader kills the member that is etcd's leader, and returns the time just before, and a function that starts
	// it again.
	KillLeader func(ctx context.Context) (killed time.Time, restart func(ctx context.Context) error, err error)
	// Worker makes the command of a process that runs Work; the run uses its standard streams. The
	// process first reads WorkerInput. Start, if not nil, is called to start the command instead of
	// its own method.
	Worker      func() *exec.Cmd
	WorkerInput []byte
	Start       func(*exec.Cmd) error
}

// dial makes a client of the site.
func (s Site) dial(with ...grpc.DialOption) (*clientv3.Client, error) {
	cfg := s.Client
	cfg.DialOptions = append(slices.Clone(cfg.DialOptions), with...)
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("dialling %v: %w", cfg.Endpoints, err)
	}
	return client, nil
}

// host runs candidates and observers: in this process, or in a worker. All methods may be called
// from many goroutines.
type host struct{ place }

// place carries out calls, here or in another process.
type place interface {
	// do blocks until the call is done, or ctx ends.
	do(ctx context.Context, c call) (answer, error)
	// kill ends the place as SIGKILL does; a local one is only closed. ended returns why calls
	// cannot succeed any more, nil if they can.
	kill() error
	ended() error
	// close ends the place. Sessions on it must have been closed.
	close() error
}

// call is an operation for a place. Of is the ID of the session, candidate or crowd that it uses.
type call struct {
	Do                        string
	Of                        int64
	Contender, Election, Text string
	TTL                       time.Duration
	N, Slow                   int
	Cut                       bool
}

// answer is the result of a call. Times are wall-clock times of the place.
type answer struct {
	ID              int64
	At, First, Last time.Time
	Key             string
	Notifies        bool
	Wire            wire
	// Err is the text of an error; if it is set, no other field is.
	Err         string
	Unsupported bool
}

// newHost makes a host in this process, or in one of its own.
func newHost(site Site, process bool) (host, error) {
	if process {
		w, err := startWorker(site)
		return host{w}, err
	}
	l, err := newLocal(site)
	return host{l}, err
}

func (h host) isWorker() bool {
	_, ok := h.place.(*worker)
	return ok
}

// open starts a session of the named contender.
func (h host) open(ctx context.Context, contender string, ttl time.Duration) (session made, err error) {
	a, err := h.do(ctx, call{Do: "open", Contender: contender, TTL: ttl})
	if err != nil {
		return made{}, fmt.Errorf("opening a session: %w", err)
	}
	return made{h, a.ID}, nil
}

// observe adds n observers of an election that has a leader, and blocks until they have received
// it.
func (h host) observe(ctx context.Context, contender, election string, n, slow int) (crowd made, err error) {
	a, err := h.do(ctx, call{Do: "observe", Contender: contender, Election: election, N: n, Slow: slow})
	if err != nil {
		return made{}, fmt.Errorf("adding observers: %w", err)
	}
	return made{h, a.ID}, nil
}

// keeper is the process ID of the host's keeper, 0 if it has none.
func (h host) keeper(ctx context.Context) (int, error) {
	a, err := h.do(ctx, call{Do: "keeper"})
	return int(a.ID), err
}

// spin keeps a processor busy until ctx ends.
func (h host) spin(ctx context.Context) { _, _ = h.do(ctx, call{Do: "spin"}) }

// suspend stops the host's process, or continues it.
func (h host) suspend(stop bool) error {
	w, ok := h.place.(*worker)
	if !ok {
		return errors.ErrUnsupported
	}
	return suspend(w.cmd.Process, stop)
}

// rotate sends n cheap reads. The client sends them to the members in turn.
func (h host) rotate(ctx context.Context, n int) error {
	_, err := h.do(ctx, call{Do: "rotate", N: n})
	return err
}

// cut interrupts the network of the host's client, or restores it.
func (h host) cut(ctx context.Context, cut bool) error {
	_, err := h.do(ctx, call{Do: "cut", Cut: cut})
	return err
}

// wires adds up what the hosts' clients have sent and received so far.
func wires(ctx context.Context, hosts ...host) (sum wire, err error) {
	for _, h := range hosts {
		a, err := h.do(ctx, call{Do: "wire"})
		if err != nil {
			return wire{}, err
		}
		for i, n := range a.Wire {
			sum[i] += n
		}
	}
	return sum, nil
}

// made is what a call has made on a host: a contender's session, a candidate, or a crowd, which is a number of
// observers of one election.
type made struct {
	host host
	id   int64
}

func (m made) do(ctx context.Context, c call) (answer, error) {
	c.Of = m.id
	return m.host.do(ctx, c)
}

// Close removes everything that is bound to a session, or ends a crowd. If etcd does not confirm
// that in time, no further attempts are made. A second call does nothing.
func (m made) Close(ctx context.Context) error {
	_, err := m.do(ctx, call{Do: "close"})
	return err
}

// candidate makes a candidate of a session, which is not registered yet.
func (m made) candidate(ctx context.Context, election string) (*candidate, error) {
	a, err := m.do(ctx, call{Do: "candidate", Election: election})
	return &candidate{made: made{m.host, a.ID}, election: election}, err
}

// await blocks until every observer of a crowd that is not slow has seen that the candidate of this key leads,
// now or earlier, and returns when the first and the last saw it. await can be called once for a
// key.
func (m made) await(ctx context.Context, key string) (first, last time.Time, err error) {
	a, err := m.do(ctx, call{Do: "await", Text: key})
	return a.First, a.Last, err
}

// candidate is a contender's candidate, and its tenure after it has won.
type candidate struct {
	made
	election string
	// key is the key of the tenure. notifies means that the contender notifies its users of a loss.
	key      string
	notifies bool
}

// campaign blocks until the candidate leads, and returns when the contender's own call returned.
func (c *candidate) campaign(ctx context.Context) (won time.Time, err error) {
	a, err := c.do(ctx, call{Do: "campaign"})
	c.key, c.notifies = a.Key, a.Notifies
	return a.At, err
}

// outcome is how a call in the background ended, and when.
type outcome struct {
	at  time.Time
	err error
}

// start runs such a call, campaign or lost, in the background. The outcome is sent once.
func start(ctx context.Context, f func(ctx context.Context) (time.Time, error)) <-chan outcome {
	result := make(chan outcome, 1)
	go func() {
		at, err := f(ctx)
		result <- outcome{at, err}
	}()
	return result
}

// lost blocks until the user of the contender is notified of the loss, and returns when that was.
// It returns the zero time if the contender does not notify.
func (c *candidate) lost(ctx context.Context) (time.Time, error) {
	if !c.notifies {
		return time.Time{}, nil
	}
	a, err := c.do(ctx, call{Do: "lost"})
	return a.At, err
}

// watch makes the place check every five milliseconds whether the tenure holds (contender.Tenure.Holds), as long as its
// client is open. held returns when it last did.
func (c *candidate) watch(ctx context.Context) error {
	_, err := c.do(ctx, call{Do: "watch"})
	return err
}

func (c *candidate) held(ctx context.Context) (time.Time, error) {
	a, err := c.do(ctx, call{Do: "held"})
	return a.At, err
}

// resign ends the tenure. put writes, under the tenure's protection, a key that is deleted with the
// session.
func (c *candidate) resign(ctx context.Context) error {
	_, err := c.do(ctx, call{Do: "resign"})
	return err
}

func (c *candidate) put(ctx context.Context, key string) error {
	_, err := c.do(ctx, call{Do: "put", Text: key})
	return err
}
