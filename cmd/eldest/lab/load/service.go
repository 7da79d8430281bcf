package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
)

// store is the leader-elected service: it puts a key that did not exist before, with the guard of
// its tenure.
type store struct {
	kvpb.UnimplementedKVServer
	tenure *elector.Leadership
}

// Put answers like curator/kv, without its trail, which grows with every write.
func (s store) Put(ctx context.Context, in *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	_, err := s.tenure.Txn(ctx).Then(clientv3.OpPut(in.GetKey(), fmt.Sprint(s.tenure.Token()))).Commit()
	switch {
	case err == nil:
		return &kvpb.PutResponse{}, nil
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		return nil, status.Error(codes.Unknown, err.Error())
	case errors.Is(err, eldest.ErrDeposed), errors.Is(err, eldest.ErrNotLeading):
		return nil, curator.NothingApplied(err)
	case ctx.Err() != nil:
		return nil, err // the caller's end, or the tenure's
	default:
		return nil, status.Error(codes.Unknown, err.Error())
	}
}

// node is one instance of the service, and a caller's connection to it.
type node struct {
	*curator.Curator
	conn *grpc.ClientConn
	kvpb.KVClient
	stop context.CancelFunc
	done chan error
}

func (r *run) serve(id string, cli *clientv3.Client) (*node, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &node{done: make(chan error, 1)}
	n.Curator, err = curator.New(curator.Config{
		Elector: elector.Config{
			Election: service, NodeID: id, Source: elector.Always(elector.Client(cli)),
			Session: lease.Options{TTL: time.Duration(r.scale.TTL)},
		},
		Listeners: []curator.Listener{{Listener: listener}},
		Services: func(_ context.Context, l *elector.Leadership, to grpc.ServiceRegistrar) error {
			kvpb.RegisterKVServer(to, store{tenure: l})
			return nil
		},
		Background: func(ctx context.Context, _ *elector.Leadership) error {
			r.book.count("tenures of the service")
			select { // and then another node leads
			case <-time.After(time.Duration(r.scale.HandOver)):
			case <-ctx.Done():
			}
			return nil
		},
	})
	if err == nil {
		n.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	n.KVClient = kvpb.NewKVClient(n.conn)
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	go func() { n.done <- n.Run(ctx) }()
	return n, nil
}

// end stops a node and judges how it ended.
func (n *node) end(b *book) {
	n.stop()
	if err := <-n.done; !errors.Is(err, context.Canceled) || errors.Is(err, eldest.ErrStuck) {
		b.violation("a node of the service ended with %v", err)
	}
	_ = n.conn.Close() // no caller uses it any more
}

// called is the prefix of the service's writes: the number of the burst, and of the call follow.
const called = "/load/called/"

// answerIn is the deadline of a call, and overdue the time after it when an answer counts as
// missing.
const (
	answerIn = 20 * time.Second
	overdue  = 30 * time.Second
)

// documented are the codes that a call may end with (package curator, Codes), without those that
// this service and these callers cannot cause.
var documented = map[codes.Code]bool{
	codes.OK: true, codes.Unavailable: true, codes.DeadlineExceeded: true,
	codes.Unknown: true, // the service's own, if the outcome is unknown
}

// call sends bursts of calls to nodes that do not lead, until ctx ends.
func (r *run) call(ctx context.Context) {
	for n := range ticks(ctx, r.scale.CallEvery) {
		r.burst(slices.DeleteFunc(slices.Clone(r.nodes), func(n *node) bool { return n.Status().Role() == elector.Leading }), n)
	}
}

// burst sends all calls at once, waits for the answers, and reads from etcd what they wrote.
func (r *run) burst(to []*node, number int) {
	prefix := fmt.Sprintf("%s%06d/", called, number)
	var together sync.WaitGroup
	begun := time.Now()
	answers := oracle.NewLog(func() time.Duration { return time.Since(begun) }, func() int64 { return 0 })
	start := make(chan struct{})
	for i := range r.scale.Calls {
		together.Go(func() {
			<-start
			r.answer(to[i%len(to)], fmt.Sprintf("%s%06d", prefix, i), answers)
		})
	}
	begun = time.Now()
	close(start)
	together.Wait()
	r.book.took("a burst of calls", time.Since(begun))
	ctx, cancel := context.WithTimeout(context.Background(), r.scale.patience())
	defer cancel()
	h := &oracle.History{About: oracle.About{Prefix: service + "/", Data: strings.TrimSuffix(prefix, "/")}, Events: answers.Events()}
	if r.audit(ctx, prefix, func(c oracle.Change) { h.Changes = append(h.Changes, c) }) {
		slices.SortFunc(h.Changes, func(a, b oracle.Change) int { return cmp.Compare(a.Rev, b.Rev) })
		r.book.judgeWrites("calls", h)
	}
	r.book.count("bursts")
}

// answer makes one call and records how it ended.
func (r *run) answer(n *node, key string, answers *oracle.Log) {
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	begun := time.Now()
	answers.Add(oracle.Event{Kind: oracle.Sent, Who: "a caller", Write: key})
	_, err := n.Put(ctx, &kvpb.PutRequest{RequestId: key, Key: key})
	took := time.Since(begun)
	r.book.took("a call", took)
	code := status.Code(err)
	detail, lost := curator.LostLeadership(err, service)
	e := oracle.Event{Kind: oracle.Unclear, Who: "a caller", Write: key}
	kind := code.String()
	switch {
	case err == nil:
		e.Kind = oracle.Acked
	case lost && detail.GetNothingApplied():
		e.Kind = oracle.Refused
		kind += ", nothing applied"
	case lost:
		kind += ", leadership lost"
	}
	answers.Add(e)
	r.book.count("calls: " + kind)
	r.book.count("calls")
	switch {
	case !documented[code]:
		r.book.violation("a call ended with %v, which is not documented: %v", code, err)
	case code == codes.Unavailable && !lost:
		r.book.violation("UNAVAILABLE without its detail: %v", err)
	case took > answerIn+overdue:
		r.book.late("a call with a deadline of %v took %v", answerIn, took)
	}
}
