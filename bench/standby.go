package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
)

var standby = Scenario{
	Name:     "standby",
	Summary:  "a service that needs N MiB of data from etcd: from the win to its first answer, with a warm standby and without",
	Defaults: Options{Rounds: 30, Warmup: 3, Sizes: []int{1, 16}, Contenders: []string{contender.Eldest}},
	Regimes: []Term{
		{Name: "cold", Text: "the new leader reads N MiB from etcd after its win, and then serves"},
		{Name: "warm", Text: "a standby function has read them and follows their changes; after the win, one read proves that none is missing"},
	},
	Metrics: []Term{
		{Name: "answer", Text: "from the win to the receipt of the new leader's first answer, for a caller whose calls wait meanwhile", Better: Lower},
		{Name: "lead", Text: "from the win to the call of the lead function: the standby function must return before", Better: Lower},
	},
	measure: measureStandby,
}

func measureStandby(r *run) {
	data := dataset{r.newLeased(), map[int]bool{}}
	defer data.remove()
	r.measure(r.points(point{timeout: turnTimeout}, 0, "cold", "warm"), func(t *turn) {
		if t.contender != contender.Eldest {
			check(fmt.Errorf("no service: %w", errors.ErrUnsupported))
		}
		prefix := data.of(t.point.n)
		name := t.election()
		leader := t.newServiceNode(t.local(), name, prefix, false)
		t.await(leader.served)
		next := t.newServiceNode(t.local(), name, prefix, t.point.regime == "warm")
		check(data.put(t.ctx, prefix+"last", "")) // the standby function follows it
		t.await(next.ready)
		t.sleep(300 * time.Millisecond) // all watches are created
		answered := make(chan outcome, 1)
		go func() { answered <- next.firstAnswer(t.ctx) }()
		leader.stop()
		o := <-answered
		check(o.err)
		won, led := t.await(next.won), t.await(next.led)
		t.took("answer", o.at.Sub(won))
		t.took("lead", led.Sub(won))
	})
}

// await receives from c.
func (t *turn) await(c <-chan time.Time) (at time.Time) {
	select {
	case at = <-c:
	case <-t.ctx.Done():
		check(context.Cause(t.ctx))
	}
	return at
}

// first sends at to c, unless c has a time already.
func first(c chan<- time.Time, at time.Time) {
	select {
	case c <- at:
	default:
	}
}

// serviceNode is a curator that answers with the size of its copy of the data.
type serviceNode struct {
	id      string
	copy    *dataCopy
	address string
	// Each receives the time at which the node was first so far: it waits to lead, and has its data if
	// it is warm; it has won; its lead function was called; it serves.
	ready, won, led, served chan time.Time
	stop                    func()
}

// newServiceNode runs a node, which ends with the turn.
func (t *turn) newServiceNode(on *local, election, prefix string, warm bool) *serviceNode {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	n := &serviceNode{
		id: listener.Addr().String(), address: listener.Addr().String(), copy: &dataCopy{client: on.client, prefix: prefix},
		ready: make(chan time.Time, 1), won: make(chan time.Time, 1), led: make(chan time.Time, 1), served: make(chan time.Time, 1),
	}
	cfg := curator.Config{Listeners: []curator.Listener{{Listener: listener}}, Services: n.services}
	cfg.Elector = elector.Config{
		Election: election, NodeID: n.id, Source: elector.Always(elector.Client(on.client)), Session: lease.Options{TTL: handoverTTL},
	}
	cfg.Elector.Candidate.Hooks = n.hooks(warm)
	if warm {
		cfg.Elector.Standby = n.standBy
	}
	c := must(curator.New(cfg))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx)
	}()
	n.stop = func() {
		cancel()
		<-done
	}
	t.after(func(context.Context) { n.stop() })
	return n
}

// hooks returns the hooks that record the win. Without a standby function the node is ready when it
// waits.
func (n *serviceNode) hooks(warm bool) (h election.Hooks) {
	h.Won = func(e election.WonEvent) { first(n.won, e.At) }
	if !warm {
		h.Waiting = func(e election.WaitingEvent) { first(n.ready, e.At) }
	}
	return h
}

// standBy reads the data, and follows its changes until ctx ends.
func (n *serviceNode) standBy(ctx context.Context, _ *elector.Positions) {
	if n.copy.load(ctx) != nil || n.copy.catchUp(ctx) != nil {
		return // the lead function reads what is missing
	}
	first(n.ready, time.Now())
	_ = n.copy.follow(ctx, 0)
}

// services is the lead function: it has all data before it serves.
func (n *serviceNode) services(ctx context.Context, _ *elector.Leadership, r grpc.ServiceRegistrar) error {
	first(n.led, time.Now())
	if n.copy.revision == 0 {
		if err := n.copy.load(ctx); err != nil {
			return err
		}
	}
	if err := n.copy.catchUp(ctx); err != nil {
		return err
	}
	r.RegisterService(&sizeService, n)
	first(n.served, time.Now())
	return nil
}

// sizeMethod is the only method of the service. It answers with the node's ID.
const sizeMethod = "/eldest.bench.Size/Get"

var sizeService = grpc.ServiceDesc{
	ServiceName: "eldest.bench.Size", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Get", Handler: func(n any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := decode(new(wrapperspb.StringValue)); err != nil {
			return nil, err
		}
		return wrapperspb.String(n.(*serviceNode).id), nil
	}}},
}

// firstAnswer calls the service through this node, again and again, and returns when this node has
// answered itself. A call that has no leader waits in the curator.
func (n *serviceNode) firstAnswer(ctx context.Context) outcome {
	conn, err := grpc.NewClient(n.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return outcome{err: err}
	}
	defer func() { _ = conn.Close() }()
	for ctx.Err() == nil {
		var answer wrapperspb.StringValue
		err := conn.Invoke(ctx, sizeMethod, wrapperspb.String(""), &answer)
		if err == nil && answer.GetValue() == n.id {
			return outcome{at: time.Now()}
		}
	}
	return outcome{err: context.Cause(ctx)}
}
