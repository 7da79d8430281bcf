package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/retry"
)

// local is a place in this process: one client, and the objects that were made on it.
type local struct {
	client  *clientv3.Client
	meter   *meter
	network *network

	mu     sync.Mutex
	last   int64
	things map[int64]any // sessions, candidates and crowds, by ID
}

// openSession is a session and the IDs of its candidates.
type openSession struct {
	contender.Session
	candidates []int64
}

// openCandidate is a candidate, and its tenure after it has won.
type openCandidate struct {
	contender.Candidate
	contender.Tenure
	lease clientv3.LeaseID
	held  atomic.Pointer[time.Time] // when the tenure last held, if it is watched
}

func newLocal(site Site) (*local, error) {
	l := &local{meter: &meter{}, network: newNetwork(), things: map[int64]any{}}
	var err error
	l.client, err = site.dial(grpc.WithStatsHandler(l.meter), grpc.WithContextDialer(l.network.dial))
	return l, err
}

func (l *local) kill() error  { return l.close() }
func (l *local) ended() error { return nil }

func (l *local) close() error {
	l.network.cut(false) // otherwise nothing can be closed
	return l.client.Close()
}

// do is a switch over all calls, so that both kinds of places share one list of them.
func (l *local) do(ctx context.Context, c call) (answer, error) {
	switch c.Do {
	case "open":
		of, err := contender.Named(c.Contender)
		if err != nil {
			return answer{}, err
		}
		s, err := of.Open(ctx, l.client, c.TTL)
		return l.keep(&openSession{Session: s}, err)
	case "observe":
		of, err := contender.Named(c.Contender)
		if err != nil {
			return answer{}, err
		}
		o, err := observe(ctx, of, l.client, c.Election, c.N, c.Slow)
		return l.keep(o, err)
	case "wire":
		return answer{Wire: l.meter.read()}, nil
	case "rotate":
		var err error
		for i := 0; i < c.N && err == nil; i++ {
			_, err = l.client.Get(ctx, "eldest-bench", clientv3.WithSerializable(), clientv3.WithCountOnly())
		}
		return answer{}, err
	case "cut":
		l.network.cut(c.Cut)
		return answer{}, nil
	case "keeper":
		return answer{ID: int64(contender.KeeperPid())}, nil
	case "spin":
		for ctx.Err() == nil {
			continue
		}
		return answer{}, nil
	}
	l.mu.Lock()
	thing := l.things[c.Of]
	l.mu.Unlock()
	if c.Do == "close" {
		l.forget(c.Of)
		return answer{}, closeThing(ctx, thing)
	}
	switch thing := thing.(type) {
	case *openSession:
		return l.ofSession(thing, c)
	case *openCandidate:
		return l.ofCandidate(ctx, thing, c)
	case *observers:
		first, last, err := thing.await(ctx, c.Text)
		return answer{First: first, Last: last}, err
	}
	return answer{}, fmt.Errorf("call %q: no object has the ID %d", c.Do, c.Of)
}

func (l *local) ofSession(s *openSession, c call) (answer, error) {
	made, err := s.Candidate(c.Election, "")
	a, err := l.keep(&openCandidate{Candidate: made, lease: s.Lease()}, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	s.candidates = append(s.candidates, a.ID)
	return a, err
}

func (l *local) ofCandidate(ctx context.Context, o *openCandidate, c call) (answer, error) {
	if c.Do == "campaign" {
		return o.campaign(ctx)
	}
	switch {
	case o.Tenure == nil:
		return answer{}, fmt.Errorf("call %q: %d has not won", c.Do, c.Of)
	case c.Do == "lost":
		select {
		case <-o.Context().Done():
			return answer{At: time.Now()}, nil
		case <-ctx.Done():
			return answer{}, context.Cause(ctx)
		}
	case c.Do == "watch":
		go o.watch(l.client.Ctx())
		return answer{}, nil
	case c.Do == "held":
		if held := o.held.Load(); held != nil {
			return answer{At: *held}, nil
		}
		return answer{}, nil
	case c.Do == "resign":
		return answer{}, o.Resign(ctx)
	case c.Do == "put":
		_, err := o.Do(ctx, clientv3.OpPut(c.Text, fmt.Sprintf("%064d", time.Now().UnixNano()), clientv3.WithLease(o.lease)))
		return answer{}, err
	}
	return answer{}, fmt.Errorf("call %q is unknown", c.Do)
}

// campaign ends with ctx, with its cause, even if the contender ignores ctx: etcd's own package
// withdraws a canceled campaign under the client's context, for as long as the cluster does not
// answer. That goroutine then ends with the client.
func (o *openCandidate) campaign(ctx context.Context) (answer, error) {
	type result struct {
		tenure contender.Tenure
		at     time.Time
		err    error
	}
	done := make(chan result, 1)
	go func() {
		t, err := o.Campaign(ctx)
		done <- result{t, time.Now(), err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return answer{}, r.err
		}
		o.Tenure = r.tenure
		return answer{At: r.at, Key: o.Key(), Notifies: o.Context().Done() != nil}, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// watch notes when the tenure holds, until the client is closed: the time is taken before Holds is called.
func (o *openCandidate) watch(client context.Context) {
	for client.Err() == nil {
		if now := time.Now(); o.Holds() {
			o.held.Store(&now)
		}
		_ = retry.Sleep(client, 5*time.Millisecond)
	}
}

// keep assigns an ID to what a call has made.
func (l *local) keep(thing any, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.things[l.last] = thing
	return answer{ID: l.last}, nil
}

// forget drops a session and its candidates, or a crowd: the memory of a long run must not grow.
func (l *local) forget(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.things[id].(*openSession); ok {
		for _, c := range s.candidates {
			delete(l.things, c)
		}
	}
	delete(l.things, id)
}

// closeAll closes what is still open, and then the place.
func (l *local) closeAll() {
	l.network.cut(false)
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	var open []any
	for _, thing := range l.things {
		open = append(open, thing)
	}
	_ = parallel(ctx, len(open), func(ctx context.Context, i int) error {
		_ = closeThing(ctx, open[i]) // on an error its lease expires
		return nil
	})
	_ = l.close()
}

// closeThing closes a session or a crowd; a candidate is closed with its session.
func closeThing(ctx context.Context, thing any) error {
	switch thing := thing.(type) {
	case *openSession:
		err := thing.Close(ctx)
		if err != nil {
			thing.Abandon()
		}
		return err
	case *observers:
		thing.close(ctx)
	}
	return nil
}
